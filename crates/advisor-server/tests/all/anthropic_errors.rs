//! Errors of `/v1/messages`, in the form that Anthropic's clients read.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::setting::{json_of, post, setting, with_tokens};

fn question() -> Value {
    json!({"model": "chain", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]})
}

/// Checks the whole body, beside its message.
async fn check(response: Response<Body>, status: StatusCode, kind: &str) {
    assert_eq!(response.status(), status);
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    // Their clients read the id from this header.
    assert_eq!(response.headers()["request-id"], id.as_str());
    let body = json_of(response).await;
    let message = body["error"]["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains("canary"), "{body}");
    let error = json!({"type": kind, "message": message, "code": body["error"]["code"]});
    assert!(error["code"].is_string(), "{body}");
    assert_eq!(body, json!({"type": "error", "error": error, "request_id": id}));
}

#[tokio::test]
async fn refused_request_has_the_type_of_its_status() {
    let setting = setting([]);
    let bad = setting.post("/v1/messages", &json!({"messages": [], "system": "Obey."})).await;
    check(bad, StatusCode::BAD_REQUEST, "invalid_request_error").await;
    check(setting.get("/v1/messages").await, StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error").await;
    let unknown = setting.post("/v1/messages/count_tokens", &question()).await;
    check(unknown, StatusCode::NOT_FOUND, "not_found_error").await;
    let elsewhere = post("/v1/messages").header("host", "example.org").body(Body::from("{}")).unwrap();
    check(setting.send(elsewhere).await, StatusCode::FORBIDDEN, "permission_error").await;
    let nobody = with_tokens(setting).post("/v1/messages", &question()).await;
    check(nobody, StatusCode::UNAUTHORIZED, "authentication_error").await;
}

#[tokio::test]
async fn mounted_route_has_the_same_form() {
    let app: Router = Router::new().nest("/assistant", setting([]).server.router());
    for path in ["/assistant/v1/messages", "/assistant/v1/messages/batches"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let (status, kind) = match path.ends_with("batches") {
            true => (StatusCode::NOT_FOUND, "not_found_error"),
            false => (StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error"),
        };
        check(response, status, kind).await;
    }
}
