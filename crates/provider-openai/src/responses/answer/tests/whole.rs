//! Answers that are not streamed.

use super::*;

#[test]
fn whole_answer_equals_its_stream() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let answer = json!({"id": "resp_1", "object": "response", "model": "m", "status": "completed",
        "output": [reasoning, message("msg_1", "Hi"), call("2", "add", "{\"a\":1}")],
        "usage": {"input_tokens": 7, "output_tokens": 5}});
    let outcome = read(&answer.to_string());
    assert_eq!(blocks_of(&outcome), ["reasoning: Hm.", "text: Hi", "add({\"a\":1})"]);
    let response = outcome.expect("an answer");
    assert_eq!(response.finish().reason, FinishReason::ToolCalls);
    assert_eq!(response.usage().and_then(|usage| usage.input_tokens), Some(7));
    assert_eq!(response.response_id(), Some("resp_1"));
    let data = response.blocks().next().map(|(_, block)| block.provider_data().len());
    assert_eq!(data, Some(1));
}

#[test]
fn whole_answer_may_be_cut_failed_or_unfinished() {
    let whole = |status: &str, more: Value| {
        let mut answer = json!({"object": "response", "status": status, "output": [message("m", "Hi")]});
        if let (Some(answer), Some(more)) = (answer.as_object_mut(), more.as_object()) {
            answer.extend(more.clone());
        }
        read(&answer.to_string())
    };
    let cut = whole("incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    assert_eq!(cut.expect("an answer").finish().reason, FinishReason::Length);
    let failed = whole("failed", json!({"error": {"code": "server_error", "message": "m"}}));
    assert_eq!(failed.expect_err("a failure").kind(), ErrorKind::Provider { status: None });
    for status in ["queued", "in_progress"] {
        assert_eq!(whole(status, json!({})).expect_err("no end").kind(), ErrorKind::Truncated);
    }
}

#[test]
fn error_in_place_of_an_answer_is_typed() {
    let error =
        read(r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#);
    assert_eq!(error.expect_err("an error").kind(), ErrorKind::ContextOverflow);
    let report = Responses::read_report(r#"{"error":{"message":"m","code":"c"}}"#).expect("a report");
    assert!(report.code.is_some());
}
