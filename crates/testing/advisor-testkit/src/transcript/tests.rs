//! Tests of `transcript`.

use super::*;

/// Returns the data of every event, `[DONE]` as a string, and comments unchanged.
fn events(body: &[u8]) -> Vec<Value> {
    let body = std::str::from_utf8(body).unwrap();
    let (events, rest) = body.rsplit_once("\n\n").unwrap();
    assert_eq!(rest, "", "the last event is ended");
    events
        .split("\n\n")
        .map(|event| match event.strip_prefix("data: ") {
            Some("[DONE]") | None => json!(event),
            Some(data) => serde_json::from_str(data).unwrap(),
        })
        .collect()
}

fn deltas(body: &[u8]) -> Vec<Value> {
    let events = events(body);
    let chunks = events.iter().filter(|event| event.is_object());
    chunks.map(|chunk| chunk["choices"][0]["delta"].clone()).collect()
}

#[test]
fn complete_answer_has_shape_of_api() {
    let body = ChatTranscript::new("m").text("Hi").finish("stop").usage(3, 4).done();
    let envelope = |choices: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m", "choices": choices
        })
    };
    let mut usage = envelope(json!([]));
    usage["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    assert_eq!(
        events(&body),
        [
            envelope(
                json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}])
            ),
            envelope(json!([{"index": 0, "delta": {"content": "Hi"}, "finish_reason": null}])),
            envelope(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])),
            usage,
            json!("data: [DONE]"),
        ]
    );
}

#[test]
fn tool_call_sends_name_once_then_arguments() {
    let body = ChatTranscript::new("m")
        .tool_call(0, "call_1", "add", &["{\"a\"", ":1}"])
        .tool_call_whole(1, "call_2", "now", "{}")
        .done();
    assert_eq!(
        deltas(&body),
        [
            json!({"role": "assistant", "content": ""}),
            json!({"tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\""}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
            json!({"tool_calls": [
                {"index": 1, "id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}}
            ]}),
        ]
    );
}

#[test]
fn text_of_several_bytes_a_character_stays_itself() {
    let text = "Grüße 🌍 \u{2028} \"quoted\" \n";
    let body = ChatTranscript::new("m").text(text).done();
    assert_eq!(deltas(&body)[1]["content"], json!(text));
    assert!(body.windows(4).any(|bytes| bytes == "🌍".as_bytes()), "not escaped");
}

#[test]
fn quirks_are_written_as_they_are() {
    let body = ChatTranscript::new("m")
        .raw_bytes(": PROCESSING\n\n")
        .delta(json!({"content": null, "tool_calls": []}))
        .reasoning("hm")
        .refusal("no")
        .raw(json!({"error": {"message": "overloaded"}}))
        .raw_bytes(b"data:{\"x\":\r\n\r\n")
        .without_done();
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.starts_with(": PROCESSING\n\ndata: {"), "{text}");
    assert!(text.contains(r#""delta":{"reasoning_content":"hm"}"#), "{text}");
    assert!(text.contains(r#""delta":{"refusal":"no"}"#), "{text}");
    assert!(
        text.ends_with("data: {\"error\":{\"message\":\"overloaded\"}}\n\ndata:{\"x\":\r\n\r\n"),
        "{text}"
    );
    assert!(!text.contains("[DONE]"));
}
