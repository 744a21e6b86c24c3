//! Tests that any bytes, in any split, give one outcome and no panic.

use advisor_testkit::split;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use provider_anthropic::recording;
use serde_json::{Value, json};

/// Events of one answer in any order, odd ones among them.
fn events() -> Vec<Value> {
    let begin = |index: i64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let piece =
        |index: i64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
        json!({"type": "ping"}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
        json!({"type": "message", "content": [{"type": "text", "text": "all"}], "stop_reason": "end_turn"}),
        json!({"type": "later"}),
        json!(7),
    ];
    for index in 0..3 {
        events.extend([
            begin(index, json!({"type": "text", "text": ""})),
            begin(index, json!({"type": "thinking", "thinking": ""})),
            begin(index, json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}})),
            begin(index, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
            piece(index, json!({"type": "text_delta", "text": "naïve \"text\" 😀"})),
            piece(index, json!({"type": "thinking_delta", "thinking": "Hm."})),
            piece(index, json!({"type": "signature_delta", "signature": "s"})),
            piece(index, json!({"type": "input_json_delta", "partial_json": "{\"b\":"})),
            piece(index, json!({"type": "citations_delta", "citation": {"url": "u"}})),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    events
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let framed = |event: Value| format!("data: {event}\n\n").into_bytes();
    let noise =
        ["data: [DONE]\n\n", "data: {\n\n", ": comment\n\n", "\r\n", "<p>", "event: error\ndata: m\n\n"];
    let noise = noise.iter().map(|noise| noise.as_bytes().to_vec());
    let known = select(events().into_iter().map(framed).chain(noise).collect::<Vec<_>>());
    let piece = prop_oneof![12 => known, 1 => vec(any::<u8>(), 0..20)];
    vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn pieces(body: &[u8], cuts: &[Index]) -> Vec<Bytes> {
    let offsets: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    split::pieces(body, &offsets).into_iter().map(Bytes::copy_from_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn law_s5_any_split_of_messages_is_equal(body in body(), cuts in vec(any::<Index>(), 0..10)) {
        let whole = recording::aggregate([Bytes::from(body.clone())]);
        prop_assert_eq!(recording::aggregate(pieces(&body, &cuts)), whole);
    }

    #[test]
    fn law_s1_any_body_of_messages_completes_or_fails(body in body()) {
        let outcome = recording::aggregate([Bytes::from(body)]);
        prop_assert!(outcome.get("text").is_some_and(Value::is_string));
        prop_assert!(outcome.get("error").is_some_and(|error| error.is_null() || error.get("kind").is_some()));
    }
}
