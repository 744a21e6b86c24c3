//! Errors in the terms that the clients of each route look for, in bodies and in streams.

use advisor_core::{Error, ErrorKind};
use advisor_sse::Frame;
use advisor_testkit::Answer;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::setting::{json_of, post, setting, text, with_tokens};

const ROUTES: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

const KINDS: [ErrorKind; 13] = [
    ErrorKind::RateLimited { retry_after: None },
    ErrorKind::Authentication,
    ErrorKind::ContextOverflow,
    ErrorKind::InvalidHistory,
    ErrorKind::NotFound,
    ErrorKind::Provider { status: Some(500) },
    ErrorKind::Timeout,
    ErrorKind::Truncated,
    ErrorKind::TooLarge,
    ErrorKind::ConversationBusy,
    ErrorKind::Store,
    ErrorKind::Cancelled,
    ErrorKind::Advisor,
];

fn question(stream: bool) -> Value {
    let messages = [json!({"role": "user", "content": "Hello"})];
    json!({"messages": messages, "input": "Hello", "max_tokens": 9, "stream": stream})
}

/// Returns type, code and text of an error.
fn terms(error: &Value) -> [Value; 3] {
    ["type", "code", "message"].map(|field| error[field].clone())
}

#[tokio::test]
async fn error_is_the_same_in_a_body_and_in_a_stream() {
    for kind in KINDS {
        for route in ROUTES {
            let failing = || setting([Answer::new().text("It is").error(Error::new(kind, "canary"))]);
            let whole = json_of(failing().post(route, &question(false)).await).await;
            let stream = text(failing().post(route, &question(true)).await).await;
            let events: Vec<_> = Frame::read_all(&stream).iter().filter_map(Frame::json).collect();
            let error = events.iter().find_map(|event| event.get("error")).unwrap();
            assert_eq!(terms(error), terms(&whole["error"]), "{kind:?} {route}");
        }
    }
}

#[tokio::test]
async fn refused_requests_have_the_codes_that_clients_look_for() {
    let setting = with_tokens(setting([]));
    for (route, code) in [
        ("/v1/chat/completions", "invalid_api_key"),
        ("/v1/responses", "invalid_api_key"),
        ("/v1/models", "invalid_api_key"),
        ("/api/chunks", "unauthorized"),
        ("/api/conversations", "unauthorized"),
    ] {
        let response = match route {
            "/v1/models" | "/api/conversations" => setting.get(route).await,
            _ => setting.post(route, &question(false)).await,
        };
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{route}");
        let error = json_of(response).await["error"].clone();
        assert_eq!([&error["type"], &error["code"]], ["invalid_request_error", code], "{route}");
    }
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
    let unknown = setting.post("/v1/messages/count_tokens", &question(false)).await;
    check(unknown, StatusCode::NOT_FOUND, "not_found_error").await;
    let elsewhere = post("/v1/messages").header("host", "example.org").body(Body::from("{}")).unwrap();
    check(setting.send(elsewhere).await, StatusCode::FORBIDDEN, "permission_error").await;
    let nobody = with_tokens(setting).post("/v1/messages", &question(false)).await;
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
