//! Reasoning between tags at the beginning of the text.

use advisor_core::BlockKind;
use advisor_test_support::decoding::assert_same_at_any_split;

use super::*;

fn decoder_for(tags: ThinkTags) -> Decoder {
    decoder_with(tags, SseLimits::default())
}

fn content(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

/// Reads a body whole, and checks that it gives the same in any pieces. Returns the blocks: reasoning in
/// brackets, calls by name.
fn blocks(tags: ThinkTags, body: &str) -> Vec<String> {
    assert_same_at_any_split(|| decoder_for(tags), body.as_bytes(), body);
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
    ] {
        assert_eq!(blocks(tags, &body), expected, "{body}");
    }
}
