//! The ways in which an answer ends, and errors in it.

use std::error::Error as _;

use advisor_core::{ErrorKind, FinishReason};
use provider_http::failure::ProviderError;

use super::*;

fn hello() -> Vec<Value> {
    vec![start(), text(0), say(0, "Hel"), say(0, "lo"), stop(0)]
}

fn with(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    hello().into_iter().chain(more).collect()
}

fn failure(error_type: &str) -> Value {
    json!({"type": "error", "error": {"type": error_type, "message": "m"}, "request_id": "req_1"})
}

#[test]
fn q35_finish_reason_or_end_event_completes() {
    let reason_only = response_to(&with([finish("end_turn")]));
    let both = response_to(&with([finish("end_turn"), end()]));
    assert_eq!(reason_only, both);
    let end_only = response_to(&with([end()]));
    assert_eq!((end_only.finish.reason.clone(), end_only.finish.inferred), (FinishReason::Stop, true));
}

#[test]
fn after_the_end_only_usage_counts() {
    let late = [json!({"type": "ping", "cost": "0"}), say(0, "late"), failure("api_error")];
    let response = response_to(&with([finish("end_turn"), end()].into_iter().chain(late)));
    assert_eq!(response.text(), "Hello");
    let mut body = sse(&with([finish("end_turn"), end()]));
    body.extend_from_slice(b"event: data\ndata: [DONE]\n\ndata: null\n\n");
    assert_eq!(result_of(&body).1.expect("an answer"), response);
    // Some gateways send the marker in place of the event.
    let mut body = sse(&with([finish("end_turn")]));
    body.extend_from_slice(b"data: [DONE]\n\n");
    assert_eq!(result_of(&body).1.expect("an answer"), response);
}

#[test]
fn q31_finish_reason_of_nothing_is_none() {
    let nothing =
        json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 5}});
    let mut empty = nothing.clone();
    empty["delta"]["stop_reason"] = "".into();
    assert_eq!(error_of(&with([nothing, empty])).kind(), ErrorKind::Truncated);
}

#[test]
fn q47_error_event_fails_the_answer() {
    for (error_type, kind, retryable) in [
        ("overloaded_error", ErrorKind::Provider { status: None }, true),
        ("api_error", ErrorKind::Provider { status: None }, true),
        ("authentication_error", ErrorKind::Authentication, false),
    ] {
        let call = [tool(1, "t", "f"), input(1, "{}"), stop(1)];
        let events = with(call.into_iter().chain([failure(error_type), finish("tool_use"), end()]));
        let error = error_of(&events);
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{error_type}");
        assert_eq!(error.partial().expect("a partial answer").text(), "Hello");
        let said = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
        assert_eq!(
            said.map(|said| (said.message.as_str(), said.kind.as_deref())),
            Some(("m", Some(error_type)))
        );
    }
}

#[test]
fn answer_without_content_is_empty() {
    let response = response_to(&[start(), text(0), say(0, ""), stop(0), finish("end_turn"), end()]);
    assert_eq!((kinds(&response).len(), &response.finish.reason), (0, &FinishReason::Empty));
}

#[test]
fn answer_cut_at_any_byte_has_one_outcome() {
    let call = [tool(1, "t", "f"), input(1, "{\"ö\":"), input(1, "\"😀\"}"), stop(1)];
    let body = sse(&with(call.into_iter().chain([finish("tool_use"), end()])));
    let mut outcomes = Vec::new();
    for end in 0..=body.len() {
        match read(&[&body[..end]]).response {
            Ok(response) => {
                assert_eq!(runnable(&response), [("f".to_owned(), "{\"ö\":\"😀\"}".to_owned())]);
                outcomes.push(true);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Truncated, "{end}");
                outcomes.push(false);
            }
        }
    }
    outcomes.dedup();
    assert_eq!(outcomes, [false, true]);
}
