//! Fields and query parameters that the server does not know.

use advisor_server::Inspector;
use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, setting, text};

/// A server that has a conversation `c1` with the turn `t1`, and answers further turns.
async fn with_conversation() -> Setting {
    let setting = setting((0..3).map(|_| Answer::from_text("Fine.")));
    let setting = setting.with(|server| server.with_inspector(&Inspector::new()).unwrap());
    let body = json!({"message": "Hi", "conversation": "c1", "turn": "t1"});
    text(setting.post("/api/chat", &body).await).await;
    setting
}

/// Returns the message of an error, after a check that the request is not valid.
async fn refusal(setting: &Setting, method: Method, path: &str, body: &Value) -> String {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = setting.send(request.body(Body::from(body.to_string())).unwrap()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
    let body = json_of(response).await;
    assert_eq!(body["error"]["code"], "invalid_request", "{path}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn unknown_fields_of_own_routes_are_refused() {
    let setting = with_conversation().await;
    let known = "`message`, `conversation`, `turn`, `replaces`, `decisions`";
    for path in ["/api/chat", "/api/chunks"] {
        let body = json!({"message": "Hi", "conversaton": "c1"});
        let message = refusal(&setting, Method::POST, path, &body).await;
        let expected = format!("unknown field `conversaton`, expected one of {known} at");
        assert!(message.contains(&expected), "{path}: {message}");
    }
    assert_eq!(setting.model.calls(), 1);
}

#[tokio::test]
async fn unknown_parameters_of_own_routes_are_refused() {
    let setting = with_conversation().await;
    let chat = json!({"message": "Hi", "conversation": "c1"});
    for (method, path, known) in [
        (Method::POST, "/api/chat", "expected `view`"),
        (Method::GET, "/api/conversations", "expected `after` or `view`"),
        (Method::GET, "/api/conversations/c1", "expected one of `limit`, `before`, `view`"),
        (Method::GET, "/api/conversations/c1/stream", "expected `view`"),
    ] {
        let path = format!("{path}?veiw=page");
        let message = refusal(&setting, method, &path, &chat).await;
        assert!(message.contains("unknown field `veiw`") && message.contains(known), "{path}: {message}");
    }
    assert_eq!(setting.model.calls(), 1);
}

/// Clients of other protocols send settings that the chain does not have.
#[tokio::test]
async fn unknown_fields_of_other_protocols_are_ignored() {
    let message =
        json!({"role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi", "x": 1}], "x": 1});
    for (path, body) in [
        ("/api/ui", json!({"id": "c1", "messages": [message], "x": 1})),
        ("/api/ag-ui", json!({"threadId": "c1", "runId": "r1", "messages": [message], "x": 1})),
        (
            "/api/ag-ui",
            json!({
                "threadId": "c1", "runId": "r1", "messages": [message], "tools": [],
                "state": {"x": 1}, "context": [{"description": "x", "value": "y"}], "forwardedProps": {"x": 1},
            }),
        ),
        ("/v1/chat/completions", json!({"messages": [message], "stream_options": {"x": 1}, "x": 1})),
        ("/v1/responses", json!({"input": [message], "x": 1})),
        ("/v1/messages", json!({"messages": [message], "metadata": {"x": 1}, "x": 1})),
    ] {
        let setting = setting([Answer::from_text("Fine.")]);
        let response = setting.post(&format!("{path}?beta=true"), &body).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(text(response).await.contains("Fine."), "{path}");
    }
}
