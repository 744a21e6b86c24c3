//! Reasoning between tags at the beginning of the text.

use advisor_core::{BlockKind, DeltaKind};
use advisor_testkit::decoding::{assert_decoded_as_parsed, fast_events};

use super::*;
use crate::profile::{Profile, ThinkTags};

fn form(tags: ThinkTags, choices: u32) -> TextForm {
    let mut profile = Profile::compatible();
    profile.think_tags = tags;
    TextForm::new(&profile, choices)
}

fn decoder_for(tags: ThinkTags) -> Decoder {
    decoder_with(1, form(tags, 1), SseLimits::default())
}

fn content(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

/// Reads a body whole, and checks that it gives the same in any pieces, parsed or not. Returns the blocks: reasoning in
/// brackets, calls by name.
fn blocks(tags: ThinkTags, body: &str) -> Vec<String> {
    assert_decoded_as_parsed(|| decoder_for(tags), body.as_bytes(), body);
    let response = read_with(decoder_for(tags), &[body.as_bytes()]).0.expect(body);
    let shown = |block: &Block| match block.content() {
        BlockContent::Reasoning(text) => format!("[{text}]"),
        BlockContent::ToolCall(call) => format!("call {}", call.name),
        BlockContent::Refusal(text) => format!("refused {text}"),
        content => content.text_of(BlockKind::Text).expect("text").to_owned(),
    };
    response.message().blocks().iter().map(shown).collect()
}

#[test]
fn leading_reasoning_is_a_separate_block() {
    const CALL: &str = r#"data: {"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]}}]}"#;
    let call = format!("{CALL}\n\n");
    let field = r#"data: {"choices":[{"delta":{"reasoning_content":"Hm"}}]}"#.to_owned() + "\n\n";
    let refusal = r#"data: {"choices":[{"delta":{"refusal":"No"}}]}"#.to_owned() + "\n\n";
    let whole = |text: &str| json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
    let stream = |events: &[String]| events.concat() + STOP + DONE;
    for (tags, body, expected) in [
        (
            ThinkTags::Leading,
            stream(&["<th", "ink>H", "m</th", "ink>\n", "\nHi", " <think>"].map(content)),
            vec!["[Hm]", "Hi <think>"],
        ),
        (ThinkTags::Leading, stream(&["Hi", "<think>Hm</think>"].map(content)), vec!["Hi<think>Hm</think>"]),
        (ThinkTags::Leading, stream(&["<think>Hm", "</thin"].map(content)), vec!["[Hm</thin]"]),
        (ThinkTags::Leading, stream(&[content("<thi")]), vec!["<thi"]),
        (ThinkTags::OpenedByPrompt, stream(&["Hm</think>", "Hi"].map(content)), vec!["[Hm]", "Hi"]),
        (ThinkTags::AsText, stream(&[content("<think>Hm</think>Hi")]), vec!["<think>Hm</think>Hi"]),
        // Held text comes before a call.
        (ThinkTags::Leading, stream(&[content("<think>Hm</"), call.clone()]), vec!["[Hm</]", "call look"]),
        (ThinkTags::Leading, stream(&[content("<"), call.clone()]), vec!["<", "call look"]),
        (
            ThinkTags::Leading,
            stream(&[content("<think>Hm</think>\n"), call.clone()]),
            vec!["[Hm]", "call look"],
        ),
        // The field counts, and the text between tags repeats it.
        (ThinkTags::OpenedByPrompt, stream(&[field.clone(), content("Hi")]), vec!["[Hm]", "Hi"]),
        (
            ThinkTags::OpenedByPrompt,
            stream(&[field.clone(), content("<think>Hm</think>Hi")]),
            vec!["[Hm]", "Hi"],
        ),
        (ThinkTags::Leading, stream(&[content("<th"), refusal]), vec!["<th", "refused No"]),
        (ThinkTags::Leading, stream(&[field, content("<think>Hm</think>Hi")]), vec!["[Hm]", "Hi"]),
        (ThinkTags::Leading, whole("<think>Hm</think>\nHi").to_string(), vec!["[Hm]", "Hi"]),
        (ThinkTags::Leading, whole("<think>Hm").to_string(), vec!["[Hm]"]),
    ] {
        assert_eq!(blocks(tags, &body), expected, "{body}");
    }
}

#[test]
fn text_after_reasoning_is_not_parsed() {
    let body = |before: &str| {
        let pieces = [before].into_iter().chain(["word "; 100]);
        pieces.map(content).collect::<String>() + STOP + DONE
    };
    let leading = || ChatCompletions::new(form(ThinkTags::Leading, 1), FORMAT.into());
    assert!(fast_events(leading(), body("<think>Hm</think>").as_bytes()) > 90);
    // Each piece of reasoning may end it.
    assert_eq!(fast_events(leading(), body("<think>").as_bytes()), 0);
    assert_eq!(blocks(ThinkTags::Leading, &(body("<think>"))), [format!("[{}]", "word ".repeat(100))]);
}

#[test]
fn each_answer_has_its_own_beginning() {
    let piece = |index: u32, text: &str| json!({"index": index, "delta": {"content": text}});
    let event = |choices: Value| format!("data: {}\n\n", json!({ "choices": choices }));
    let texts = |choices: u32, events: &[String]| {
        let decoder = decoder_with(choices, form(ThinkTags::Leading, choices), SseLimits::default());
        let deltas =
            advisor_testkit::decoding::decoded(decoder, &[(events.concat() + DONE).as_bytes()]).deltas;
        let mut texts = Vec::new();
        for delta in deltas.into_iter().map(|delta| delta.expect("a delta")) {
            match delta.kind {
                DeltaKind::Text(text) => texts.push((delta.choice, text.to_string())),
                DeltaKind::Reasoning(text) => texts.push((delta.choice, format!("[{text}]"))),
                _ => {}
            }
        }
        texts
    };
    let two = [
        event(json!([piece(0, "<think>a"), piece(1, "<think>b")])),
        event(json!([piece(1, "</think>B"), piece(0, "</think>A"), piece(7, "<"), piece(9, "x")])),
    ];
    let own = [(0, "[a]"), (1, "[b]"), (1, "B"), (0, "A"), (9, "<x")].map(|(at, text)| (at, text.to_owned()));
    assert_eq!(texts(2, &two), own);
    // With one answer, the number may count tokens (Q54).
    let counted = [event(json!([piece(0, "<think>")])), event(json!([piece(1, "a</think>")]))];
    assert_eq!(texts(1, &counted), [(1, "[a]".to_owned())]);
}
