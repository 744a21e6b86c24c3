//! Tests that any bytes, in any split, give one outcome and no panic.

use advisor_testkit::split;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use provider_openai::recording;

/// Pieces of streams: good events, odd ones, errors, ends, noise, and bytes that are no text.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let event = |json: &'static str| format!("data: {json}\n\n").into_bytes();
    let known = select(vec![
        event(r#"{"id":"r","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#),
        event(r#"{"choices":[{"delta":{"content":"naïve \"text\" 😀"}}]}"#),
        event(r#"{"choices":[{"delta":{"reasoning":"so","reasoning_details":[{"type":"t","text":"so"}]}}]}"#),
        event(
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"a"}]},{"type":"x"}]}}]}"#,
        ),
        event(r#"{"choices":[{"index":1,"delta":{"refusal":"no"}}]}"#),
        event(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
        ),
        event(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"id":"b","function":{"name":"g","arguments":{"x":1}}}]}}]}"#,
        ),
        event(r#"{"choices":[{"delta":{"function_call":{"name":"h","arguments":"{}"}}}]}"#),
        event(r#"{"choices":[{"message":{"content":"all"},"finish_reason":"stop"}]}"#),
        event(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}"#),
        event(r#"{"choices":[],"error":{"message":"m","code":429}}"#),
        event("[DONE]"),
        event("null"),
        event("{\"choices\":"),
        b"event: error\ndata: words\n\n".to_vec(),
        b": comment\n\n".to_vec(),
        b"\r\n".to_vec(),
        b"<p>".to_vec(),
        br#"{"choices":[{"message":{"content":"all"}}]}"#.to_vec(),
        br#"[{"error":"m"}]"#.to_vec(),
        b"\xFF".to_vec(),
        b"\xEF\xBB\xBF".to_vec(),
    ]);
    mixed(known)
}

/// Bodies of these pieces, and of bytes that are no text.
fn mixed(known: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![8 => known, 1 => vec(any::<u8>(), 0..20)];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// The same for the Responses API.
fn responses_body() -> impl Strategy<Value = Vec<u8>> {
    let event = |json: &'static str| format!("data: {json}\n\n").into_bytes();
    let known = select(vec![
        event(r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#),
        event(
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m0"}}"#,
        ),
        event(
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m0","content_index":0,"delta":"naïve 😀"}"#,
        ),
        event(r#"{"type":"response.output_text.delta","item_id":"m0","delta":"no index"}"#),
        event(r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"whole"}"#),
        event(r#"{"type":"response.output_text.delta","delta":"neither"}"#),
        event(r#"{"type":"response.refusal.delta","output_index":0,"content_index":1,"delta":"no"}"#),
        event(
            r#"{"type":"response.reasoning_summary_text.delta","output_index":1,"summary_index":0,"delta":"hm"}"#,
        ),
        event(r#"{"type":"response.reasoning_text.delta","output_index":1,"content_index":0,"delta":"hm"}"#),
        event(
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"r1","encrypted_content":"e"}}"#,
        ),
        event(
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"c","name":"f"}}"#,
        ),
        event(
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"f2","delta":"{\"a\":1}"}"#,
        ),
        event(r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"a\":1}"}"#),
        event(
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}}"#,
        ),
        event(
            r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"web_search_call","id":"w"}}"#,
        ),
        event(
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m0","content":[{"type":"output_text","text":"whole"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}"#,
        ),
        event(r#"{"type":"response.incomplete","response":{"status":"incomplete"}}"#),
        event(r#"{"type":"response.failed","response":{"error":{"message":"m"}}}"#),
        event("[DONE]"),
        event("{\"type\":"),
        b"event: error\ndata: words\n\n".to_vec(),
        b": comment\n\n".to_vec(),
        br#"{"object":"response","status":"completed","output":[]}"#.to_vec(),
        b"\xFF".to_vec(),
    ]);
    mixed(known)
}

fn pieces(body: &[u8], cuts: &[Index]) -> Vec<Bytes> {
    let offsets: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    split::pieces(body, &offsets).into_iter().map(Bytes::copy_from_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn law_s5_any_body_split_has_same_outcome(
        body in body(),
        cuts in vec(any::<Index>(), 0..10),
    ) {
        let whole = recording::aggregate([Bytes::from(body.clone())]);
        prop_assert_eq!(recording::aggregate(pieces(&body, &cuts)), whole);
    }

    #[test]
    fn law_s5_any_responses_body_split_has_same_outcome(
        body in responses_body(),
        cuts in vec(any::<Index>(), 0..10),
    ) {
        let whole = recording::aggregate_responses([Bytes::from(body.clone())]);
        prop_assert_eq!(recording::aggregate_responses(pieces(&body, &cuts)), whole);
    }

    #[test]
    fn law_s1_a_responses_body_completes_or_fails(body in responses_body()) {
        let outcome = recording::aggregate_responses([Bytes::from(body)]);
        prop_assert!(outcome["text"].is_string() && outcome["tool_calls"].is_array());
        prop_assert!(outcome["error"].is_null() || outcome["error"]["kind"].is_string());
    }

    #[test]
    fn law_s1_a_body_completes_or_fails(body in body()) {
        let outcome = recording::aggregate([Bytes::from(body)]);
        prop_assert!(outcome["text"].is_string() && outcome["tool_calls"].is_array());
        prop_assert!(outcome["error"].is_null() || outcome["error"]["kind"].is_string());
    }
}

#[test]
fn deeply_nested_content_causes_no_stack_overflow() {
    for depth in [3, 100, 100_000] {
        let nested = ["[".repeat(depth), "]".repeat(depth)].concat();
        let item = format!(r#"{{"type":"x","a":{nested}}}"#);
        let event = format!(r#"data: {{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
        let outcome = recording::aggregate_responses([Bytes::from(event + "\n\ndata: [DONE]\n\n")]);
        assert_eq!(outcome["text"], "", "{depth}");
        let content = [r#"[{"thinking":"#.repeat(depth), "1".to_owned(), "}]".repeat(depth)].concat();
        let body = format!(r#"data: {{"choices":[{{"delta":{{"content":{content}}}}}]}}"#);
        let outcome = recording::aggregate([Bytes::from(body + "\n\ndata: [DONE]\n\n")]);
        assert_eq!(outcome["text"], "", "{depth}");
    }
}
