//! Pages of other sites: off by default, and with allowed origins.

use advisor_server::AllowedOrigins;
use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use crate::setting::{Setting, post, setting, text};

const CHAT: &str = "https://chat.example.org";

fn with_origins(answers: impl IntoIterator<Item = Answer>) -> Setting {
    setting(answers).with(|server| server.with_allowed_origins(AllowedOrigins::new([CHAT]).unwrap()))
}

fn preflight(origin: &str) -> Request<Body> {
    Request::builder()
        .method(Method::OPTIONS)
        .uri("/api/chat")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,x-stainless-os")
        .body(Body::empty())
        .unwrap()
}

fn asking(origin: &str) -> Request<Body> {
    let body = json!({"message": "How is it?"}).to_string();
    let request = post("/api/chat").header("origin", origin).header("sec-fetch-site", "cross-site");
    request.body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn without_origins_no_other_page_is_answered() {
    let setting = setting([]);
    let asked = setting.send(preflight(CHAT)).await;
    assert_eq!(asked.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(!asked.headers().contains_key("access-control-allow-origin"));
    let answer = setting.send(asking(CHAT)).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(!answer.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn page_of_an_allowed_origin_is_answered() {
    let setting = with_origins([Answer::from_text("Fine.")]);
    let asked = setting.send(preflight(CHAT)).await;
    let headers = asked.headers();
    assert_eq!(
        (asked.status(), &headers["access-control-allow-origin"]),
        (StatusCode::OK, &CHAT.parse().unwrap())
    );
    assert!(headers["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    assert!(headers["access-control-allow-headers"].to_str().unwrap().contains("x-stainless-os"));
    assert!(!headers.contains_key("access-control-allow-credentials"), "no cookie is ever sent");
    assert!(headers.contains_key("x-request-id"));
    let answer = setting.send(asking(CHAT)).await;
    assert_eq!(answer.headers()["access-control-allow-origin"], CHAT);
    assert!(
        answer.headers()["access-control-expose-headers"].to_str().unwrap().contains("x-conversation-id")
    );
    assert!(text(answer).await.contains("Fine."));
}

#[tokio::test]
async fn page_of_another_origin_is_not_answered() {
    let setting = with_origins([]);
    for origin in ["https://example.org", "http://chat.example.org", "https://chat.example.org:8443", "null"]
    {
        let asked = setting.send(preflight(origin)).await;
        assert!(!asked.headers().contains_key("access-control-allow-origin"), "{origin}");
        let answer = setting.send(asking(origin)).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin}");
        assert!(!answer.headers().contains_key("access-control-allow-origin"), "{origin}");
    }
    assert_eq!(setting.model.calls(), 0);
}
