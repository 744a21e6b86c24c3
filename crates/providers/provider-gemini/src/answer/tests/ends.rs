//! Ends of answers: finish reasons, failures, blocked prompts, cut bodies.

use advisor_core::{ErrorKind, FinishReason};

use super::*;

/// The wire marks the end of each call, so only what is known to cut an answer stops a whole one. A call without its
/// end runs under no word.
#[test]
fn law_t6_finish_reason_ends_no_call() {
    let parts = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let whole = parts(json!({"functionCall": {"name": "f", "args": {"a": 1}}}));
    let piece = json!({"jsonPath": "$.a", "stringValue": "x"});
    let cut = parts(json!({"functionCall": {"name": "f", "partialArgs": [piece], "willContinue": true}}));
    for (written, runs) in
        [("STOP", true), ("SOMETHING_NEW", true), ("OTHER", true), ("MAX_TOKENS", false), ("SAFETY", false)]
    {
        let may_run = |call: &Value| {
            let response = read(&[call.clone(), finish(written)]).response.expect(written);
            !response.finish.reason.vetoes_calls()
                && response.tool_calls().any(|(_, call)| call.complete && call.parsed_arguments().is_ok())
        };
        assert_eq!((may_run(&whole), may_run(&cut)), (runs, false), "{written}");
    }
}

fn failed(events: &[Value]) -> Error {
    read(events).response.expect_err("a failure")
}

#[test]
fn q67_error_like_reasons_are_failures() {
    for written in [
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
        "NO_IMAGE",
    ] {
        for before in [None, Some(text("Hi"))] {
            let mut last = finish(written);
            last["candidates"][0]["finishMessage"] = "Malformed: print(x)".into();
            last["usageMetadata"] = json!({"promptTokenCount": 3});
            let shown = before.is_some();
            let error = failed(&before.into_iter().chain([last]).collect::<Vec<_>>());
            assert_eq!(error.kind(), ErrorKind::Provider { status: None }, "{written}");
            assert!(error.to_string().contains(written), "{error}");
            let partial = error.partial().expect("the part before it");
            assert_eq!(partial.text(), if shown { "Hi" } else { "" });
            assert_eq!(partial.usage.and_then(|usage| usage.input_tokens), Some(3));
        }
    }
    assert_eq!(failed(&[finish("MISSING_THOUGHT_SIGNATURE")]).kind(), ErrorKind::InvalidHistory);
    // Without content, an unknown reason is no success either.
    for written in ["OTHER", "SOMETHING_NEW"] {
        assert_eq!(failed(&[finish(written)]).kind(), ErrorKind::Provider { status: None });
    }
}

#[test]
fn q67_answer_without_content_is_never_a_plain_success() {
    for empty in [
        finish("STOP"),
        json!({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}),
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}),
    ] {
        let response = read(&[empty]).response.expect("an answer");
        assert_eq!(response.finish.reason, FinishReason::Empty);
    }
    let filtered = read(&[finish("SAFETY")]).response.expect("an answer");
    assert_eq!(filtered.finish.reason, FinishReason::ContentFilter);
}

#[test]
fn blocked_prompt_is_a_filtered_answer() {
    let feedback =
        |feedback: Value| json!({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}});
    let response =
        read(&[feedback(json!({"blockReason": "PROHIBITED_CONTENT"}))]).response.expect("an answer");
    let finish = &response.finish;
    assert_eq!(
        (&finish.reason, finish.as_written.as_deref()),
        (&FinishReason::ContentFilter, Some("PROHIBITED_CONTENT"))
    );
    assert_eq!(response.usage.and_then(|usage| usage.input_tokens), Some(4));
    let harmless =
        read(&[feedback(json!({"safetyRatings": []})), text("Hi"), stop()]).response.expect("an answer");
    assert_eq!(harmless.finish.reason, FinishReason::Stop);
}

#[test]
fn error_in_the_stream_is_typed_and_keeps_the_part_before_it() {
    let error = |code: u16, status: &str| {
        json!({"error": {"code": code, "message": "m", "status": status, "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]}})
    };
    let limited = failed(&[text("Hi"), error(429, "RESOURCE_EXHAUSTED")]);
    let delay = Some(std::time::Duration::from_secs(37));
    assert_eq!(
        (limited.kind(), limited.retry_after()),
        (ErrorKind::RateLimited { retry_after: delay }, delay)
    );
    assert_eq!(limited.partial().map(ChatResponse::text).as_deref(), Some("Hi"));
    for (code, status, kind) in [
        (503, "UNAVAILABLE", ErrorKind::Provider { status: Some(503) }),
        (400, "INVALID_ARGUMENT", ErrorKind::InvalidRequest),
        (403, "PERMISSION_DENIED", ErrorKind::Authentication),
    ] {
        assert_eq!(failed(&[error(code, status)]).kind(), kind);
        // Also after a finish reason.
        assert_eq!(failed(&[text("Hi"), stop(), error(code, status)]).kind(), kind);
    }
    let beside = {
        let mut event = text("Hi");
        event["error"] = error(500, "INTERNAL")["error"].clone();
        event
    };
    assert_eq!(failed(&[beside]).kind(), ErrorKind::Provider { status: Some(500) });
}

#[test]
fn body_that_ends_early_is_truncated() {
    let sse = sse(&[text("Hi"), text(" you")], "\r\n");
    let ReadAnswer { response: cut, .. } = read_pieces(&[&sse]);
    assert_eq!(cut.expect_err("cut").kind(), ErrorKind::Truncated);
    let array = array(&[text("Hi"), stop()]);
    for end in 0..array.len() {
        let ReadAnswer { response: cut, .. } = read_pieces(&[&array[..end]]);
        assert_eq!(cut.expect_err("cut").kind(), ErrorKind::Truncated, "{end}");
    }
}

#[test]
fn other_json_and_pages_are_no_answers() {
    for (body, kind) in [
        (r#"{"hello":1}"#, ErrorKind::Protocol { position: Some(0) }),
        ("<html>", ErrorKind::Protocol { position: None }),
        (
            r#"[{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}]"#,
            ErrorKind::NotFound,
        ),
        (
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            ErrorKind::Authentication,
        ),
    ] {
        let ReadAnswer { response, .. } = read_pieces(&[body.as_bytes()]);
        assert_eq!(response.expect_err(body).kind(), kind, "{body}");
    }
}
