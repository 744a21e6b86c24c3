//! Failures of servers.

use advisor_core::{ChatRequest, Error, ErrorKind, Message, text_with_sources};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply, answer_of};
use serde_json::json;

use crate::Ask;

/// The key with which every client under test asks.
pub const KEY: &str = "canary-key-0123456789";
/// The words of a server that refuses a request, with the key in them.
const WORDS: &str = "the machine refuses canary-key-0123456789";

/// Returns the error of an answer.
///
/// # Panics
/// If the answer is no error, or if the error shows the key.
pub async fn failure_of(ask: Ask, reply: Reply) -> Error {
    let server = ReplayServer::start([reply]).await.expect("a port");
    let model = ask(&server.url());
    let error = answer_of(&model, ChatRequest::new(Message::user("Hello"))).await.expect_err("a failure");
    let shown = format!("{error:?} {}", text_with_sources(&error));
    assert!(!shown.contains(KEY), "the key is shown: {shown}");
    assert_eq!(server.requests().len(), 1, "the model under test sends each request once");
    error
}

/// Checks the kinds of refusals, of a cut answer, of a server that hangs up, and of one that is not there.
///
/// # Panics
/// If a kind differs.
pub async fn assert_kinds(ask: Ask, rate_limited: ErrorKind) {
    for (status, kind) in [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Authentication),
        (403, ErrorKind::Authentication),
        (404, ErrorKind::NotFound),
        (429, rate_limited),
        (500, ErrorKind::Provider { status: Some(500) }),
        (503, ErrorKind::Provider { status: Some(503) }),
    ] {
        let body = json!({ "error": { "message": WORDS, "type": "refusal" } });
        let error = failure_of(ask, Reply::json(status, body).with_header("retry-after", "7")).await;
        assert_eq!(error.kind(), kind, "status {status}: {error:?}");
        assert!(!error.to_string().contains("machine"), "the words are no text of this project: {error}");
        assert!(text_with_sources(&error).contains("the machine refuses"), "they are the source: {error:?}");
    }
    let long = json!({ "error": { "message": "too long", "code": "context_length_exceeded" } });
    assert_eq!(failure_of(ask, Reply::json(400, long)).await.kind(), ErrorKind::ContextOverflow);

    let whole = ChatTranscript::new("m").text("Good").text(" morning").without_done();
    let length = whole.len();
    let error = failure_of(ask, Reply::sse(whole).cut_after(length)).await;
    assert!(matches!(error.kind(), ErrorKind::Connection | ErrorKind::Truncated), "{error:?}");
    assert_eq!(error.partial().map(|partial| partial.text()).as_deref(), Some("Good morning"));

    assert_eq!(failure_of(ask, Reply::hang_up()).await.kind(), ErrorKind::Connection);
    let nobody = {
        let server = ReplayServer::start([]).await.expect("a port");
        server.url()
    };
    let request = ChatRequest::new(Message::user("Hello"));
    let error = answer_of(&ask(&nobody), request).await.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error:?}");
    assert!(error.is_retryable());
}
