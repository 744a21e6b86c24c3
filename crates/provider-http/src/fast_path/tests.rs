//! Tests of `fast_path`.

use std::collections::VecDeque;
use std::slice;

use advisor_core::{DeltaKind, ProviderData, Usage};
use serde_json::{Value, json};

use super::*;

/// `{"id":"r","say":"Hi","note":[{"text":"Hm","kind":"k"}],"use":{"n":1},"at":1}`, where `at` is not read.
const EVENT: Field = Field::Object(&[
    ("id", Field::Once),
    ("say", Field::Text),
    ("note", Field::List(&Field::Whole(&[("text", Field::Joined)]))),
    ("use", Field::Counts),
    ("stop", Field::Read),
    ("pad", Field::Padding),
]);

/// A converter of this format.
fn convert(json: &str) -> Vec<Delta> {
    let event: Value = serde_json::from_str(json).unwrap();
    let mut deltas = Vec::new();
    if let Some(note) = event.get("note") {
        deltas.extend(note[0]["text"].as_str().map(Delta::reasoning));
        deltas.push(
            DeltaKind::ReasoningData(Box::new(ProviderData::new("note", json!({ "note": note })))).into(),
        );
    }
    if let Some(text) = event["say"].as_str() {
        deltas.push(Delta::text(text));
    }
    if let Some(count) = event["use"]["n"].as_u64() {
        let mut usage = Usage::default();
        usage.output_tokens = Some(count);
        deltas.push(Delta::usage(usage));
    }
    deltas
}

/// Takes in an event as a decoder does that parses it. Returns its deltas, without data that may continue.
fn parse(fast: &mut FastPath, name: Option<&str>, json: &str) -> Vec<Delta> {
    let mut deltas: VecDeque<_> = convert(json).into();
    fast.parsed(name, json, &mut deltas, 0);
    deltas.into()
}

fn after(framing: Framing, events: &[&str]) -> FastPath {
    let mut fast = FastPath::new(framing, &EVENT);
    for event in events {
        parse(&mut fast, None, event);
    }
    fast
}

fn decode(fast: &mut FastPath, body: &str) -> (Decoded, Vec<Delta>) {
    let mut deltas = VecDeque::new();
    let decoded = fast.decode(body.as_bytes(), 1 << 20, 32, &mut deltas);
    (decoded, deltas.into())
}

fn texts(deltas: &[Delta]) -> Vec<&str> {
    deltas
        .iter()
        .filter_map(|delta| {
            if let DeltaKind::Text(text) | DeltaKind::Reasoning(text) = &delta.kind {
                Some(&**text)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn decoding_stops_before_event_of_unknown_form() {
    let mut fast = after(Framing::Sse, &[r#"{"id":"r","say":"a","at":1}"#, r#"{"id":"r","say":"a","at":0}"#]);
    let fitting =
        "data: {\"id\":\"r\",\"say\":\"b\\n\",\"at\":2}\n\ndata: {\"id\":\"r\",\"say\":\"c\",\"at\":33}\n\n";
    let body = format!("{fitting}data: {{\"stop\":true}}\n\n");
    let (decoded, deltas) = decode(&mut fast, &body);
    assert_eq!(decoded, Decoded { bytes: fitting.len(), events: 2 });
    assert_eq!(deltas, [Delta::text("b\n"), Delta::text("c")]);
}

#[test]
fn nothing_is_decoded_before_an_event_was_parsed() {
    let mut fast = FastPath::new(Framing::Lines, &EVENT);
    assert!(!fast.has_templates());
    assert_eq!(decode(&mut fast, "{\"say\":\"a\"}\n").0, Decoded::default());
}

#[test]
fn event_with_changed_read_field_does_not_fit() {
    let known = [r#"{"id":"r","say":"a","stop":"no","at":1}"#, r#"{"id":"r","say":"a","stop":"no","at":0}"#];
    assert_eq!(
        decode(&mut after(Framing::Lines, &known), "{\"id\":\"r\",\"say\":\"b\",\"stop\":\"no\",\"at\":2}\n")
            .0
            .events,
        1
    );
    for other in [
        r#"{"id":"r","say":"b","stop":"yes","at":1}"#,
        r#"{"id":"r","say":"b","stop":"no","at":"1"}"#,
        r#"{"id":"r","say":"b","stop":"no","at":01}"#,
        r#"{"id":"r","say":"b\x","stop":"no","at":1}"#,
        r#"{"id":"r","say":null,"stop":"no","at":1}"#,
        r#"{"id":"r","say":"b","stop":"no","at":1,"use":{"n":1}}"#,
    ] {
        let (decoded, deltas) = decode(&mut after(Framing::Lines, &known), &format!("{other}\n"));
        assert_eq!((decoded, deltas), (Decoded::default(), vec![]), "{other}");
    }
}

#[test]
fn event_cut_at_any_byte_is_not_decoded() {
    let event = "data: {\"id\":\"r\",\"say\":\"b\",\"at\":2}\n\n";
    for cut in 0..event.len() {
        let mut fast = after(Framing::Sse, &[r#"{"id":"r","say":"a","at":2}"#]);
        assert_eq!(decode(&mut fast, &event[..cut]).0, Decoded::default(), "{cut}");
    }
}

#[test]
fn decoding_stops_at_its_limits() {
    let body = "{\"say\":\"b\"}\n".repeat(5);
    let mut fast = after(Framing::Lines, &[r#"{"say":"a"}"#]);
    let mut deltas = VecDeque::new();
    assert_eq!(fast.decode(body.as_bytes(), 1 << 20, 3, &mut deltas), Decoded { bytes: 36, events: 3 });
    assert_eq!(fast.decode(body.as_bytes(), 12, 4, &mut deltas).events, 1);
    assert_eq!(fast.decode(body.as_bytes(), 11, 9, &mut deltas), Decoded::default());
}

#[test]
fn templates_take_turns() {
    let mut fast = after(Framing::Lines, &[r#"{"say":"a"}"#, r#"{"id":"r","say":"a"}"#]);
    let (decoded, deltas) =
        decode(&mut fast, "{\"say\":\"b\"}\n{\"id\":\"s\",\"say\":\"c\"}\n{\"say\":\"d\"}\n");
    assert_eq!(texts(&deltas), ["b"], "another id is read");
    assert_eq!(decoded.events, 1);
    let (decoded, deltas) = decode(&mut fast, "{\"id\":\"r\",\"say\":\"c\"}\n{\"say\":\"d\"}\n");
    assert_eq!((decoded.events, texts(&deltas)), (2, vec!["c", "d"]));
}

#[test]
fn event_name_is_part_of_its_form() {
    let mut fast = FastPath::new(Framing::Sse, &EVENT);
    parse(&mut fast, Some("delta"), r#"{"say":"a"}"#);
    assert_eq!(decode(&mut fast, "data: {\"say\":\"b\"}\n\n").0, Decoded::default());
    let (decoded, deltas) = decode(&mut fast, "event: delta\ndata: {\"say\":\"b\"}\n\n");
    assert_eq!((decoded.events, texts(&deltas)), (1, vec!["b"]));
    let mut deltas = VecDeque::new();
    assert!(!fast.decode_data(None, r#"{"say":"c"}"#, &mut deltas));
    assert!(fast.decode_data(Some("delta"), r#"{"say":"c"}"#, &mut deltas));
    assert_eq!(deltas, [Delta::text("c")]);
}

#[test]
fn last_counts_per_form_are_kept_until_taken() {
    let mut fast = after(
        Framing::Lines,
        &[r#"{"say":"a","use":{"n":1}}"#, r#"{"say":"a","use":{"n":0}}"#, r#"{"say":"a"}"#],
    );
    decode(
        &mut fast,
        "{\"say\":\"b\",\"use\":{\"n\":2}}\n{\"say\":\"c\"}\n{\"say\":\"d\",\"use\":{\"n\":34}}\n",
    );
    assert_eq!(fast.take_counts(), [r#"{"say":"d","use":{"n":34}}"#]);
    assert!(fast.take_counts().is_empty());
    decode(&mut fast, "{\"say\":\"e\",\"use\":{\"n\":35}}\n");
    fast.stop_learning();
    assert_eq!(fast.take_counts(), [r#"{"say":"e","use":{"n":35}}"#], "they outlive their template");
    assert!(!fast.has_templates());
}

/// Only the last event of a run is read for its counts, so none before it may have counted more.
#[test]
fn falling_count_is_parsed() {
    let mut fast = after(Framing::Lines, &[r#"{"say":"a","use":{"n":1}}"#, r#"{"say":"a","use":{"n":0}}"#]);
    let rising = "{\"say\":\"b\",\"use\":{\"n\":9}}\n{\"say\":\"c\",\"use\":{\"n\":10}}\n";
    let falling = "{\"say\":\"d\",\"use\":{\"n\":9}}\n";
    assert_eq!(decode(&mut fast, &[rising, falling].concat()).0.events, 2);
    assert_eq!(decode(&mut fast, falling).0.events, 0);
    assert_eq!(fast.take_counts(), [r#"{"say":"c","use":{"n":10}}"#]);
}

#[test]
fn data_differing_only_in_text_is_joined() {
    let note = |text: &str| format!(r#"{{"note":[{{"text":"{text}","kind":"k"}}]}}"#);
    let joined = |text: &str| {
        Delta::from(DeltaKind::ReasoningData(Box::new(ProviderData::new(
            "note",
            json!({"note": [{"text": text, "kind": "k"}]}),
        ))))
    };
    let mut fast = FastPath::new(Framing::Lines, &EVENT);
    assert_eq!(parse(&mut fast, None, &note("a")), [Delta::reasoning("a")], "more may come");
    let (decoded, deltas) = decode(&mut fast, &format!("{}\n{}\n", note("b"), note("c")));
    assert_eq!((decoded.events, texts(&deltas)), (2, vec!["b", "c"]));
    assert_eq!(deltas.len(), 2);
    assert_eq!(parse(&mut fast, None, &note("d")), [Delta::reasoning("d")]);
    // Another kind is other data: it ends the data before it.
    let other = r#"{"note":[{"text":"e","kind":"l"}]}"#;
    assert_eq!(parse(&mut fast, None, other), [joined("abcd"), Delta::reasoning("e")]);
    // So does a text without data.
    let ended = parse(&mut fast, None, r#"{"say":"f"}"#);
    assert_eq!((ended.len(), texts(&ended)), (2, vec!["f"]));
    let mut rest = VecDeque::new();
    fast.end_data(&mut rest);
    assert!(rest.is_empty());
}

fn note(value: &Value) -> Delta {
    DeltaKind::ReasoningData(Box::new(ProviderData::new("note", json!({ "note": value })))).into()
}

/// The deltas of an event that was parsed, and of the end of the answer.
fn join(events: &[&[Delta]]) -> Vec<Delta> {
    let mut fast = FastPath::new(Framing::Lines, &EVENT);
    let mut deltas = VecDeque::new();
    for event in events {
        let new = deltas.len();
        deltas.extend(event.iter().cloned());
        fast.join_parsed(&mut deltas, new);
    }
    fast.end_data(&mut deltas);
    deltas.into()
}

#[test]
fn only_strings_of_the_table_are_joined() {
    let one = |text: &str| note(&json!([{"text": text, "meta": {"text": "m"}, "n": 1}]));
    assert_eq!(join(&[&[one("1")], &[one("2")]]), [one("12")]);
    // A difference elsewhere, or a missing string, makes other data, and neither piece changes.
    for other in [
        json!([{"text": "1", "meta": {"text": "n"}, "n": 1}]),
        json!([{"text": "1", "meta": {"text": "m"}, "n": 2}]),
        json!([{"text": null, "meta": {"text": "m"}, "n": 1}]),
        json!([{"text": "1", "meta": {"text": "m"}, "n": 1}, {"text": "1"}]),
        json!({"text": "1"}),
        json!([]),
    ] {
        let (one, other) = (one("1"), note(&other));
        assert_eq!(join(&[slice::from_ref(&one), slice::from_ref(&other)]), [one, other]);
    }
}

#[test]
fn data_with_several_strings_is_not_joined() {
    let two = |one: &str, other: &str| note(&json!([{"text": one}, {"text": other}]));
    let (first, second) = (two("a", "b"), two("c", "d"));
    assert_eq!(join(&[slice::from_ref(&first), slice::from_ref(&second)]), [first, second]);
}

#[test]
fn data_stays_before_deltas_that_end_it() {
    let data = |text: &str| note(&json!([{"text": text}]));
    let (thought, usage) = (|| Delta::reasoning("r"), || Delta::usage(Usage::default()));
    let call = || Delta::tool_call(ToolCallDelta::start(0, "c", "f"));
    // In its own event.
    assert_eq!(
        join(&[&[data("1"), Delta::text("t")], &[Delta::text("u")]]),
        [data("1"), Delta::text("t"), Delta::text("u")]
    );
    assert_eq!(join(&[&[thought(), data("1"), call()]]), [thought(), data("1"), call()]);
    // Before a piece of reasoning without more of it.
    assert_eq!(join(&[&[data("1")], &[thought()]]), [data("1"), thought()]);
    // Reasoning that brings more of it, and token counts, overtake it.
    assert_eq!(
        join(&[&[thought(), data("1"), usage()], &[thought(), data("2")]]),
        [thought(), usage(), thought(), data("12")]
    );
}

#[test]
fn law_r1_joined_data_is_passed_on_in_bounded_pieces() {
    let data = |text: &str| note(&json!([{"text": text}]));
    let long = "x".repeat(40 << 10);
    let deltas = join(&[&[data(&long)], &[data(&long)], &[data(&long)], &[data(&long)]]);
    assert_eq!(deltas, [data(&long.repeat(2)), data(&long.repeat(2))]);

    let mut fast = FastPath::new(Framing::Lines, &EVENT);
    let event = |text: &str| format!(r#"{{"note":[{{"text":"{text}"}}]}}"#);
    parse(&mut fast, None, &event("a"));
    let mut deltas = VecDeque::new();
    for _ in 0..4 {
        assert!(fast.decode_data(None, &event(&long), &mut deltas));
    }
    fast.end_data(&mut deltas);
    let pieces = deltas.iter().filter(|delta| matches!(delta.kind, DeltaKind::ReasoningData(_)));
    assert_eq!(pieces.count(), 3);
}

#[test]
fn text_repeated_elsewhere_in_event_is_not_learned() {
    let fast = after(Framing::Lines, &[r#"{"say":"no","stop":"no"}"#]);
    assert!(!fast.has_templates());
}

#[test]
fn template_does_not_match_event_beyond_limit() {
    let mut fast = after(
        Framing::Lines,
        &[
            r#"{"say":"a","use":{"n":1}}"#,
            r#"{"say":"a","use":{"n":0}}"#,
            r#"{"id":"","say":"a","use":{"n":1}}"#,
            r#"{"id":"","say":"a","use":{"n":0}}"#,
        ],
    );
    let (one, other) = (r#"{"say":"b","use":{"n":5}}"#, r#"{"id":"","say":"c","use":{"n":7}}"#);
    decode(&mut fast, &format!("{one}\n{other}\n"));
    let long = format!("{{\"say\":\"{}\",\"use\":{{\"n\":5}}}}\n", "x".repeat(99));
    assert_eq!(fast.decode(long.as_bytes(), 50, 9, &mut VecDeque::new()), Decoded::default());
    assert_eq!(fast.take_counts(), [one, other]);
}

#[test]
fn padding_may_differ_after_one_event() {
    let mut fast = after(Framing::Lines, &[r#"{"say":"a","pad":"x","at":1}"#]);
    let (decoded, deltas) = decode(&mut fast, "{\"say\":\"b\",\"pad\":\"yz\",\"at\":1}\n");
    assert_eq!((decoded.events, texts(&deltas)), (1, vec!["b"]));
    // Another value that is not read may differ once it did.
    assert_eq!(decode(&mut fast, "{\"say\":\"c\",\"pad\":\"\",\"at\":2}\n").0, Decoded::default());
    let mut fast = after(Framing::Lines, &[r#"{"pad":1,"say":"a"}"#]);
    let (decoded, deltas) = decode(&mut fast, "{\"pad\":20,\"say\":\"b\"}\n");
    assert_eq!((decoded.events, texts(&deltas)), (1, vec!["b"]));
    for other in
        ["{\"pad\":\"1\",\"say\":\"b\"}\n", "{\"pad\":-1,\"say\":\"b\"}\n", "{\"pad\":[],\"say\":\"b\"}\n"]
    {
        assert_eq!(decode(&mut fast, other).0, Decoded::default(), "{other}");
    }
}

#[test]
fn forgotten_templates_leave_their_counts() {
    let mut fast = after(Framing::Lines, &[r#"{"say":"a","use":{"n":1}}"#, r#"{"say":"a","use":{"n":0}}"#]);
    decode(&mut fast, "{\"say\":\"e\",\"use\":{\"n\":5}}\n");
    fast.forget();
    assert!(!fast.has_templates());
    assert_eq!(fast.take_counts(), [r#"{"say":"e","use":{"n":5}}"#]);
    parse(&mut fast, None, r#"{"say":"a"}"#);
    assert!(fast.has_templates(), "it still learns");
}

#[test]
fn spaces_before_last_brace_may_differ() {
    let mut fast = after(Framing::Lines, &[r#"{"say":"a"}"#, r#"{"say":"b"  }"#]);
    let (decoded, deltas) = decode(&mut fast, "{\"say\":\"c\" }\n{\"say\":\"d\"}\n{\"say\":\"e\"       }\n");
    assert_eq!((decoded.events, texts(&deltas)), (3, vec!["c", "d", "e"]));
    for other in ["{\"say\":\"c\"\t}\n", "{ \"say\":\"c\"}\n", "{\"say\":\"c\"} \n"] {
        assert_eq!(decode(&mut fast, other).0, Decoded::default(), "{other}");
    }
}

#[test]
fn law_s5_spelled_arguments_keep_their_escapes() {
    const SPELLED: Field = Field::Object(&[("say", Field::Spelled), ("n", Field::Read)]);
    let mut fast = FastPath::new(Framing::Sse, &SPELLED);
    let piece = |text: &str| Delta::tool_call(ToolCallDelta::arguments(0, text));
    let mut deltas = VecDeque::from([piece(r#"a\"b"#)]);
    fast.parsed(None, r#"{"say":"a\"b"}"#, &mut deltas, 0);
    deltas.clear();
    // Both line ends of server-sent events are known.
    let body =
        "data: {\"say\":\"c\\n\\u00e9\"}\n\ndata: {\"say\":\"d\"}\r\n\r\ndata: {\"say\":\"\\ud800\"}\r\n\r\n";
    let decoded = fast.decode(body.as_bytes(), 99, 9, &mut deltas);
    assert_eq!((decoded.events, deltas), (2, VecDeque::from([piece(r"c\n\u00e9"), piece("d")])));
    // An unescaped text differs from the text in the event.
    let mut fast = FastPath::new(Framing::Sse, &SPELLED);
    fast.parsed(None, r#"{"say":"a\"b"}"#, &mut VecDeque::from([piece("a\"b")]), 0);
    assert!(!fast.has_templates());
}

#[test]
fn counts_are_kept_with_any_line_end() {
    let events = [r#"{"say":"a","use":{"n":1}}"#, r#"{"say":"a","use":{"n":0}}"#];
    let mut fast = after(Framing::Sse, &events);
    assert_eq!(decode(&mut fast, "data: {\"say\":\"e\",\"use\":{\"n\":5}}\r\n\r\n").0.events, 1);
    assert_eq!(fast.take_counts(), [r#"{"say":"e","use":{"n":5}}"#]);
}
