//! Refusals that clients must not send again, since each attempt would begin a second turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::{Error, ErrorKind, ToolDefinition};
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolCallStreaming};

use crate::setting::{Setting, chain, refused, setting, text};

/// The routes of clients that repeat a request by its status.
const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

fn asking(is_stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    json!({"messages": messages, "input": "Hi", "user": "c1", "stream": is_stream})
}

/// Checks whether clients of OpenAI and Anthropic send the request again.
pub(crate) fn is_repeated(response: &Response<Body>) -> bool {
    let by_status = matches!(response.status().as_u16(), 408 | 409 | 429 | 500..);
    match response.headers().get("x-should-retry").map(|value| value.as_bytes()) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => by_status,
    }
}

#[tokio::test]
async fn stopped_turn_is_not_asked_again() {
    for path in PATHS {
        for is_stream in [false, true] {
            let asked = Gate::new();
            let setting = setting([Answer::new().gate(&asked)]);
            let stop = async {
                asked.reached().await;
                setting.stop().await;
            };
            let body = asking(is_stream);
            let (response, ()) = tokio::join!(setting.post(path, &body), stop);
            assert!(!is_repeated(&response), "{path}, {is_stream}");
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            assert_eq!(refused(response, status).await, "cancelled", "{path}, {is_stream}");
        }
    }
}

#[tokio::test]
async fn failed_turn_is_not_asked_again() {
    for (kind, status) in [
        (ErrorKind::InvalidInput, StatusCode::BAD_REQUEST),
        (ErrorKind::InvalidRequest, StatusCode::BAD_REQUEST),
        (ErrorKind::InvalidHistory, StatusCode::BAD_REQUEST),
        (ErrorKind::NotFound, StatusCode::BAD_GATEWAY),
        (ErrorKind::Authentication, StatusCode::BAD_GATEWAY),
        (ErrorKind::Connection, StatusCode::BAD_GATEWAY),
        (ErrorKind::Timeout, StatusCode::GATEWAY_TIMEOUT),
        (ErrorKind::NotPersisted, StatusCode::SERVICE_UNAVAILABLE),
        (ErrorKind::Advisor, StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let response = failed(Error::new(kind, "canary")).await;
        assert_eq!(response.status(), status, "{kind:?}");
        assert!(!is_repeated(&response), "{kind:?}");
    }
}

/// A turn that was refused at its start is asked again, unless it has shown something before.
#[tokio::test]
async fn refused_turn_is_asked_again_if_nothing_was_shown() {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(1)) };
    let kinds = [ErrorKind::ConversationBusy, ErrorKind::Store, limited];
    for kind in kinds {
        assert!(is_repeated(&failed(Error::new(kind, "canary")).await), "{kind:?}");
        let setting = setting([Answer::new().text("It is").error(Error::new(kind, "canary"))]);
        let shown = setting.post(PATHS[0], &asking(false)).await;
        assert!(!is_repeated(&shown) && !shown.headers().contains_key("retry-after"), "{kind:?}");
    }
    let setting = setting([]).limited(|limits| limits.running_turns = 0);
    assert!(is_repeated(&setting.post(PATHS[0], &asking(false)).await), "it has not begun");
}

/// Returns a chain whose tool `mail` counts its runs, and which shows only the last answer.
fn mailing(answers: impl IntoIterator<Item = Answer>) -> (Setting, Arc<AtomicUsize>) {
    let mails = Arc::<AtomicUsize>::default();
    let sent = Arc::clone(&mails);
    let definition = ToolDefinition::new("mail", "A tool.", json!({"type": "object"}));
    let mail = FnTool::new(definition, move |_: Value| {
        sent.fetch_add(1, Ordering::SeqCst);
        async { Ok("sent") }
    });
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::FinalAnswerOnly).build().unwrap();
    (chain(answers, |client| client.advisor(tool_loop).tool(mail)), mails)
}

/// A turn that is asked again without its id would run its tools again. Under its id, it continues.
#[tokio::test]
async fn turn_that_ran_a_tool_is_asked_again_by_its_id_only() {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(1)) };
    for path in PATHS {
        for is_stream in [false, true] {
            let busy = Answer::refused(Error::new(limited, "canary"));
            let calls = Answer::from_calls([("c1", "mail", "{}")]);
            let (setting, mails) = mailing([calls, busy, Answer::from_text("It is sent.")]);
            let ask = async || setting.post_as("k1", path, &asking(is_stream)).await;
            let failed = ask().await;
            assert_eq!(failed.status(), StatusCode::TOO_MANY_REQUESTS, "{path}, {is_stream}");
            assert!(
                !is_repeated(&failed) && !failed.headers().contains_key("retry-after"),
                "{path}, {is_stream}"
            );
            assert!(!text(failed).await.contains("try again"), "{path}, {is_stream}");
            for _ in 0..2 {
                let again = text(ask().await).await;
                assert!(again.contains("It is sent."), "{path}, {is_stream} {again}");
            }
            assert_eq!((setting.model.calls(), mails.load(Ordering::SeqCst)), (3, 1), "{path}, {is_stream}");
        }
    }
}

async fn failed(error: Error) -> Response<Body> {
    setting([Answer::refused(error)]).post(PATHS[0], &asking(false)).await
}
