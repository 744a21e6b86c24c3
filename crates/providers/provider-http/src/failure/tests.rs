//! Tests of `failure`.

use std::error::Error as _;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;

const KEY: &str = "sk-canary-0123456789";

fn failures() -> Failures {
    Failures::new(Redaction::new([KEY, "x"].map(SecretString::from).into_iter()))
}

fn response(status: u16, body: &Value) -> Error {
    let status = StatusCode::from_u16(status).expect("a status");
    failures().response(status, &HeaderMap::new(), body.to_string().as_bytes())
}

fn said(error: &Error) -> &ProviderError {
    error.source().and_then(|source| source.downcast_ref()).expect("what the provider said")
}

#[test]
fn kind_in_answer_follows_the_words_of_each_api() {
    use ErrorKind::{
        Authentication, ContextOverflow, InvalidHistory, InvalidInput, InvalidRequest, NotFound, Provider,
    };
    let anthropic =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let google = |code: u16, status: &str| json!({"error": {"code": code, "message": "m", "status": status}});
    let responses = |code: &str| json!({"code": code, "message": "m"});
    let limited = ErrorKind::RateLimited { retry_after: None };
    let failed = Provider { status: None };
    let cases = [
        // Anthropic (anthropic-sdk-python, `types/shared/error_type.py`), as an event of a stream (Q47).
        (anthropic("overloaded_error", "Overloaded"), failed),
        (anthropic("api_error", "Internal server error"), failed),
        (anthropic("timeout_error", "m"), failed),
        (anthropic("rate_limit_error", "m"), limited),
        (anthropic("authentication_error", "invalid x-api-key"), Authentication),
        (anthropic("permission_error", "m"), Authentication),
        (anthropic("billing_error", "m"), Authentication),
        (anthropic("not_found_error", "model: x"), NotFound),
        (anthropic("invalid_request_error", "m"), InvalidRequest),
        (anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), ContextOverflow),
        (
            anthropic(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 9 + 1 > 8",
            ),
            ContextOverflow,
        ),
        (
            anthropic(
                "invalid_request_error",
                "messages.2: `tool_use` ids were found without `tool_result` blocks",
            ),
            InvalidHistory,
        ),
        // Google.
        (google(429, "RESOURCE_EXHAUSTED"), limited),
        (google(503, "UNAVAILABLE"), Provider { status: Some(503) }),
        (google(504, "DEADLINE_EXCEEDED"), Provider { status: Some(504) }),
        (google(400, "INVALID_ARGUMENT"), InvalidRequest),
        (google(400, "FAILED_PRECONDITION"), InvalidRequest),
        (google(401, "UNAUTHENTICATED"), Authentication),
        (google(403, "PERMISSION_DENIED"), Authentication),
        // The same without a code, as gateways send it.
        (json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": "m"}}), limited),
        (json!({"error": {"status": "UNAVAILABLE", "message": "m"}}), failed),
        (json!({"error": {"status": "DEADLINE_EXCEEDED", "message": "m"}}), failed),
        (json!({"error": {"status": "INVALID_ARGUMENT", "message": "m"}}), InvalidRequest),
        (json!({"error": {"status": "PERMISSION_DENIED", "message": "m"}}), Authentication),
        // Ollama: a line with a text (Q48).
        (json!({"error": "an error was encountered while running the model"}), failed),
        (json!({"error": "the input length exceeds the context length"}), ContextOverflow),
        // OpenAI's `response.failed` (openai-python, `types/responses/response_error.py`).
        (responses("server_error"), failed),
        (responses("vector_store_timeout"), failed),
        (responses("rate_limit_exceeded"), limited),
        (responses("invalid_prompt"), InvalidInput),
        (responses("invalid_image_format"), InvalidInput),
        (responses("invalid_base64_image"), InvalidInput),
        (responses("image_too_large"), InvalidInput),
        (responses("image_parse_error"), InvalidInput),
        (responses("image_content_policy_violation"), InvalidInput),
        (responses("image_file_not_found"), InvalidInput),
        (responses("unsupported_image_media_type"), InvalidInput),
        (responses("failed_to_download_image"), InvalidInput),
    ];
    for (event, kind) in cases {
        let report = Report::find(&event).expect("a report");
        assert_eq!(failures().in_answer(report).kind(), kind, "{event}");
    }
}

#[test]
fn response_kind_follows_status_and_message() {
    use ErrorKind::{
        Authentication, Configuration, ContextOverflow, InvalidHistory, InvalidInput, InvalidRequest,
        NotFound, Provider,
    };
    let error = |message: &str| json!({"error": {"message": message}});
    let coded = |code: &str| json!({"error": {"message": "m", "code": code}});
    let limited = ErrorKind::RateLimited { retry_after: None };
    let cases = [
        (401, coded("invalid_api_key"), Authentication),
        (403, error("no"), Authentication),
        (402, error("Insufficient Balance"), Authentication),
        (429, coded("rate_limit_exceeded"), limited),
        (429, coded("insufficient_quota"), Authentication),
        (
            429,
            error("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000"),
            ContextOverflow,
        ),
        (
            413,
            json!({"error": {"message": "Request too large for model `x`", "code": "rate_limit_exceeded"}}),
            ContextOverflow,
        ),
        (400, coded("context_length_exceeded"), ContextOverflow),
        (
            400,
            error("This model's maximum context length is 8192 tokens, however you requested 9000"),
            ContextOverflow,
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}),
            ContextOverflow,
        ),
        (500, error("Context size has been exceeded."), ContextOverflow),
        (
            400,
            error("Prompt contains 9 tokens, too large for model with 8 maximum context length"),
            ContextOverflow,
        ),
        (413, error("the body is too large"), InvalidRequest),
        (
            400,
            error("An assistant message with 'tool_calls' must be followed by tool messages"),
            InvalidHistory,
        ),
        (
            400,
            error(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            ),
            InvalidHistory,
        ),
        (
            400,
            json!({"object": "error", "message": "Not the same number of function calls and responses", "code": null}),
            InvalidHistory,
        ),
        (400, error("Conversation roles must alternate user/assistant"), InvalidHistory),
        (400, error("'messages.1' : for 'role:assistant' the following must be satisfied"), InvalidHistory),
        (
            400,
            error("The reasoning_content in the thinking mode must be passed back to the API."),
            InvalidHistory,
        ),
        (
            400,
            json!({"code": "Client specified an invalid argument", "error": "Invalid request content: Each message must have at least one content element."}),
            InvalidHistory,
        ),
        (422, json!({"detail": [{"msg": "Extra inputs are not permitted"}]}), InvalidRequest),
        (404, error("The model `x` does not exist"), NotFound),
        (404, error("Item 'rs_1' of messages[2] was not found"), InvalidHistory),
        (410, error("the model is retired"), NotFound),
        (
            400,
            json!({"error": {"message": "m", "type": "invalid_request_error", "code": "model_not_found"}}),
            NotFound,
        ),
        (400, json!({"error": {"message": "m", "code": "model_decommissioned"}}), NotFound),
        (400, json!({"error": {"message": "a/b:free is not a valid model ID", "code": 400}}), NotFound),
        (400, json!({"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}), NotFound),
        (400, error("Could not process image"), InvalidInput),
        (
            400,
            error("messages.2.content.0.tool_result.content.0.image.source.base64.data: invalid base64 data"),
            InvalidInput,
        ),
        (400, error("Unable to process input image. Please retry"), InvalidInput),
        (400, error("Invalid content type. image_url is only supported by certain models."), InvalidInput),
        // The words of a tool are no words about the input.
        (
            400,
            json!({"error": {"message": "Invalid schema for function 'show': In context=('properties', 'image_url'), \
                'format' is not permitted.", "param": "tools[0].function.parameters"}}),
            InvalidRequest,
        ),
        (400, error("tools.0.custom.input_schema: image_url is no valid type"), InvalidRequest),
        (
            400,
            error("[{'type': 'string_type', 'loc': ('body', 'tools', 0, 'function', 'image_url')}]"),
            InvalidRequest,
        ),
        (400, error("Could not process image. See the documentation of tools."), InvalidInput),
        (
            400,
            json!({"error": {"message": "The image could not be read by tools[0].", "code": "invalid_image_format"}}),
            InvalidInput,
        ),
        (400, error("Unsupported MIME type: png"), InvalidInput),
        (
            400,
            json!({"error": {"message": "The response was filtered", "param": "prompt", "code": "content_filter"}}),
            InvalidInput,
        ),
        (400, coded("data_inspection_failed"), InvalidInput),
        (500, error("image input is not supported - hint: you may need to provide the mmproj"), InvalidInput),
        (400, error("The file was not found"), InvalidRequest),
        (400, error("API key not valid. Please pass a valid API key."), Authentication),
        (400, error("m"), InvalidRequest),
        (400, json!({"error": {"message": "m", "code": "tool_use_failed"}}), Provider { status: None }),
        (408, error("m"), Provider { status: Some(408) }),
        (500, error("m"), Provider { status: Some(500) }),
        (503, error("m"), Provider { status: Some(503) }),
        (529, error("overloaded"), Provider { status: Some(529) }),
        (
            500,
            json!({"error": {"message": "m", "type": "authentication_error"}}),
            Provider { status: Some(500) },
        ),
        (302, error("m"), Configuration),
    ];
    for (status, body, kind) in cases {
        assert_eq!(response(status, &body).kind(), kind, "{status} {body}");
    }
}

#[test]
fn error_kind_inside_answer_follows_its_content() {
    let in_answer = |error: Value| failures().in_answer(Report::read(&error)).kind();
    let cases = [
        (json!({"message": "m", "code": 429}), ErrorKind::RateLimited { retry_after: None }),
        (json!({"message": "m", "type": "rate_limit_error"}), ErrorKind::RateLimited { retry_after: None }),
        (
            json!({"message": "m", "status": "RESOURCE_EXHAUSTED"}),
            ErrorKind::RateLimited { retry_after: None },
        ),
        (json!({"message": "m", "type": "overloaded_error"}), ErrorKind::Provider { status: None }),
        (json!({"message": "m", "code": 502}), ErrorKind::Provider { status: Some(502) }),
        (json!({"message": "m", "code": 502.0}), ErrorKind::Provider { status: Some(502) }),
        (json!({"message": "m", "code": 1e30}), ErrorKind::Provider { status: None }),
        (json!({"message": "m", "type": "server_error"}), ErrorKind::Provider { status: None }),
        (json!("plain words"), ErrorKind::Provider { status: None }),
        (json!({"message": "m", "type": "authentication_error"}), ErrorKind::Authentication),
        (json!({"message": "m", "code": "context_length_exceeded"}), ErrorKind::ContextOverflow),
        (json!({"message": "m", "type": "invalid_request_error"}), ErrorKind::InvalidRequest),
        (json!({"message": "Token limit reached", "code": 400}), ErrorKind::InvalidRequest),
        (
            json!({"message": "m", "code": "tool_use_failed", "status_code": 400}),
            ErrorKind::Provider { status: None },
        ),
    ];
    for (error, kind) in cases {
        assert_eq!(in_answer(error.clone()), kind, "{error}");
    }
}

#[test]
fn the_servers_delay_is_kept() {
    let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
    let seven = Some(Duration::from_secs(7));
    let limited = failures().response(StatusCode::TOO_MANY_REQUESTS, &headers, b"");
    assert_eq!(limited.kind(), ErrorKind::RateLimited { retry_after: seven });
    assert_eq!(limited.to_string(), "the provider wants fewer requests; ask again in 7 s (HTTP 429)");
    let busy = failures().response(StatusCode::SERVICE_UNAVAILABLE, &headers, b"");
    assert_eq!(busy.to_string(), "the provider failed; ask again in 7 s (HTTP 503)");
    let refused = failures().response(StatusCode::FORBIDDEN, &headers, b"");
    assert!(!refused.to_string().contains("7 s"), "waiting does not help: {refused}");
    assert_eq!((limited.retry_after(), busy.retry_after()), (seven, seven));
}

#[test]
fn message_of_provider_is_the_source() {
    let failed = response(
        400,
        &json!({"error": {"message": "bad\u{1b}[31m\nthing", "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<f>"}}),
    );
    let said = said(&failed);
    assert_eq!(said.message, "bad [31m thing");
    assert_eq!(
        (said.status, said.code.as_deref(), said.kind.as_deref()),
        (Some(400), Some("tool_use_failed"), Some("invalid_request_error"))
    );
    assert_eq!(said.failed_generation.as_deref(), Some("<f>"));
    assert_eq!(failed.to_string(), "the provider failed (HTTP 400, tool_use_failed)");
    assert_eq!(said.to_string(), "the provider said: bad [31m thing");
    assert!(!format!("{failed:?}").contains("<f>"));
}

#[test]
fn id_of_request_is_that_of_body_or_header() {
    let id = |headers: &[(&'static str, &'static str)], body: &Value| {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        let status = StatusCode::BAD_REQUEST;
        let failed = failures().response(status, &headers.collect(), body.to_string().as_bytes());
        said(&failed).request_id.clone()
    };
    let plain = json!({"error": {"message": "m"}});
    let named = json!({"type": "error", "error": {"message": "m"}, "request_id": "req_1"});
    assert_eq!(id(&[], &plain), None);
    assert_eq!(id(&[("request-id", "req_2")], &named).as_deref(), Some("req_1"));
    assert_eq!(id(&[("request-id", "req_2"), ("x-request-id", "req_3")], &plain).as_deref(), Some("req_2"));
    assert_eq!(id(&[("x-request-id", "req_3")], &plain).as_deref(), Some("req_3"));
    assert_eq!(id(&[("x-request-id", KEY)], &plain).as_deref(), Some("[secret]"));
}

#[test]
fn unrecognized_error_body_is_shown_from_its_start() {
    let failed = failures().response(StatusCode::BAD_GATEWAY, &HeaderMap::new(), b"  <html>\n502</html> ");
    assert_eq!(said(&failed).message, "<html> 502</html>");
    let silent = failures().response(StatusCode::BAD_GATEWAY, &HeaderMap::new(), b"");
    assert_eq!(said(&silent).to_string(), "the provider gave no reason");
    let binary = failures().response(StatusCode::BAD_GATEWAY, &HeaderMap::new(), b"\xFF\xFE");
    assert_eq!(said(&binary).message, "\u{FFFD}\u{FFFD}");
}

#[test]
fn law_r3_secrets_are_blanked_out_and_words_are_capped() {
    let message = format!("Incorrect key {KEY}: {}", "é".repeat(5000));
    let body = json!({"error": {"message": message, "code": format!("bad_{KEY}"), "failed_generation": KEY}});
    let error = response(401, &body);
    let said = said(&error);
    assert!(said.message.starts_with("Incorrect key [secret]: éé"));
    assert!(said.message.len() <= LONGEST_TEXT && said.message.len() > LONGEST_TEXT - 4);
    let all = format!("{error} {error:?} {said} {said:?} {:?} {:?}", said.code, said.failed_generation);
    assert!(!all.contains("canary"), "{all}");
    // A short secret would redact half of every message.
    assert!(said.message.contains("Incorrect key"));
}

#[test]
fn transport_failures_have_kinds() {
    use crate::timeouts::{Clock, TimedOut};
    let source = || "reset by peer".into();
    let cases = [
        (TransportError::Connect { source: source() }, ErrorKind::Connection, true),
        (TransportError::Broken { source: source() }, ErrorKind::Connection, true),
        (TimedOut::new(Clock::Idle, Duration::from_secs(1)).into(), ErrorKind::Timeout, true),
        (TransportError::Other { source: source() }, ErrorKind::Configuration, false),
    ];
    for (error, kind, retryable) in cases {
        let error = failures().transport(error);
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable));
        assert!(error.source().is_some());
    }
}

#[test]
fn machine_words_are_distinguished_from_prose() {
    use provider_error::is_word;
    for word in ["rate_limit_exceeded", "messages[3].content", "invalid-request", "a/b:c"] {
        assert!(is_word(word), "{word}");
    }
    for words in ["", "two words", "naïve", "\"quoted\"", "line\nbreak"] {
        assert!(!is_word(words), "{words}");
    }
}
