//! Tests that any bytes, in any split, give one outcome and no panic.

use advisor_testkit::split;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use provider_ollama::recording;

/// Pieces of streams: good lines, odd ones, errors, ends, noise, and bytes that are no text.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let line = |json: &'static str| format!("{json}\n").into_bytes();
    let known = select(vec![
        line(r#"{"model":"m","message":{"role":"assistant","content":"naïve \"text\" 😀"},"done":false}"#),
        line(r#"{"model":"m","message":{"role":"assistant","content":"more"},"done":false}"#),
        line(r#"{"message":{"content":"","thinking":"so"}}"#),
        line(
            r#"{"message":{"content":"a","thinking":"b","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}"#,
        ),
        line(
            r#"{"message":{"tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{"x":[1]}}},{}]}}"#,
        ),
        line(r#"{"message":{"tool_calls":[{"function":{"arguments":"{"}},null]},"eval_count":3}"#),
        line(r#"{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":1}"#),
        line(r#"{"done":true}"#),
        line(r#"{"error":"m"}"#),
        line(r#"{"message":"m"}"#),
        line("null"),
        line("{\"message\":"),
        b"\r\n".to_vec(),
        b"<p>".to_vec(),
        b"words".to_vec(),
        br#"[{"error":"m"}]"#.to_vec(),
        b"\xFF".to_vec(),
        b"\xEF\xBB\xBF".to_vec(),
    ]);
    let piece = prop_oneof![8 => known, 1 => vec(any::<u8>(), 0..20)];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn pieces(body: &[u8], cuts: &[Index]) -> Vec<Bytes> {
    let offsets: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    split::pieces(body, &offsets).into_iter().map(Bytes::copy_from_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn law_s5_any_body_split_has_same_outcome(body in body(), cuts in vec(any::<Index>(), 0..10)) {
        let whole = recording::aggregate([Bytes::from(body.clone())]);
        prop_assert_eq!(recording::aggregate(pieces(&body, &cuts)), whole.clone());
        prop_assert!(whole["text"].is_string() && whole["tool_calls"].is_array());
        prop_assert!(whole["error"].is_null() || whole["error"]["kind"].is_string());
    }
}

#[test]
fn deeply_nested_arguments_cause_no_stack_overflow() {
    for depth in [3, 100, 100_000] {
        let arguments = ["[".repeat(depth), "]".repeat(depth)].concat();
        let call = format!(r#"{{"function":{{"name":"f","arguments":{{"a":{arguments}}}}}}}"#);
        let body = format!("{{\"message\":{{\"tool_calls\":[{call}]}},\"done\":true}}\n");
        let outcome = recording::aggregate([Bytes::from(body)]);
        assert_eq!(outcome["error"].is_null(), depth < 128, "{depth}");
    }
}
