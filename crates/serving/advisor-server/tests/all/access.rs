//! Tokens, tenants, hosts, bounds and bad requests.

use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode};
use serde_json::json;

use crate::disconnects::bodies;
use crate::setting::{Setting, json_of, post, refused, rest_of, setting, text, until, with_tokens};

/// Anthropic's clients send their key in a header of its name.
#[tokio::test]
async fn token_may_be_in_the_header_of_anthropic() {
    let body = json!({"messages": [{"role": "user", "content": "Hi"}]}).to_string();
    for (key, status) in [
        ("the-token-of-ann", StatusCode::OK),
        ("the-token-of-eve", StatusCode::UNAUTHORIZED),
        ("Bearer the-token-of-ann", StatusCode::UNAUTHORIZED),
        ("", StatusCode::UNAUTHORIZED),
    ] {
        let setting = with_tokens(setting([Answer::from_text("Hi.")]));
        let request = post("/v1/messages").header("x-api-key", key).header("x-conversation-id", "c1");
        let response = setting.send(request.body(Body::from(body.clone())).unwrap()).await;
        assert_eq!(response.status(), status, "{key}");
        let answer = json_of(response).await;
        assert_eq!(answer["error"]["type"] == "authentication_error", status != StatusCode::OK, "{answer}");
        assert_eq!(setting.model.calls(), usize::from(status == StatusCode::OK));
        // The conversation is one of the token's tenant.
        for (tenant, found) in [("ann", status), ("bob", StatusCode::NOT_FOUND)] {
            let found = if found == StatusCode::OK { found } else { StatusCode::NOT_FOUND };
            let path = "/api/conversations/c1";
            let reading = Request::get(path).header("x-api-key", format!("the-token-of-{tenant}"));
            let read = setting.send(reading.body(Body::empty()).unwrap()).await;
            assert_eq!(read.status(), found, "{key} {tenant}");
        }
    }
}

#[tokio::test]
async fn without_tokens_only_this_machine_is_served() {
    let setting = setting([]);
    let with_host = |host: &str| Request::get("/v1/models").header("host", host).body(Body::empty()).unwrap();
    assert_eq!(setting.send(with_host("localhost:8080")).await.status(), StatusCode::OK);
    let code = refused(setting.send(with_host("rebound.example.org")).await, StatusCode::FORBIDDEN).await;
    assert_eq!(code, "forbidden");
    for elsewhere in [
        Request::get("/v1/models").header("host", &b"\xe9vil.example"[..]),
        Request::get("/v1/models").header("host", "localhost").header("host", "evil.example"),
        Request::get("http://evil.example/v1/models"),
    ] {
        let response = setting.send(elsewhere.body(Body::empty()).unwrap()).await;
        assert_eq!(refused(response, StatusCode::FORBIDDEN).await, "forbidden");
    }
    for (site, status) in [
        ("cross-site", StatusCode::FORBIDDEN),
        ("same-site", StatusCode::FORBIDDEN),
        ("same-origin", StatusCode::NO_CONTENT),
        ("none", StatusCode::NO_CONTENT),
    ] {
        let request = Request::post("/api/conversations/c1/stop").header("sec-fetch-site", site);
        assert_eq!(setting.send(request.body(Body::empty()).unwrap()).await.status(), status, "{site}");
    }
}

#[tokio::test]
async fn broken_bodies_are_refused() {
    let setting = setting([]);
    for (kind, body, status) in [
        ("application/json", "{\"message\"", StatusCode::BAD_REQUEST),
        ("application/json", "{}", StatusCode::BAD_REQUEST),
        ("application/json", "{\"message\":\" \"}", StatusCode::BAD_REQUEST),
        ("text/plain", "{\"message\":\"x\"}", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        let request = Request::post("/api/chat").header("content-type", kind).body(Body::from(body)).unwrap();
        assert_eq!(refused(setting.send(request).await, status).await, "invalid_request", "{body}");
    }
    assert_eq!(setting.model.calls(), 0);
}

#[tokio::test]
async fn more_turns_than_allowed_are_refused() {
    let gate = Gate::new();
    let answers = [Answer::new().text("It").gate(&gate).done(), Answer::from_text("Yes.")];
    let setting = setting(answers).limited(|limits| limits.running_turns = 1);
    let (_, first) = until(setting.post("/api/chat", &json!({"message": "One?"})).await, "It").await;
    let second = setting.post("/api/chat", &json!({"message": "Two?"})).await;
    assert_eq!(second.headers()["retry-after"], "1");
    assert_eq!(refused(second, StatusCode::TOO_MANY_REQUESTS).await, "too_many_turns");
    gate.release();
    rest_of(first).await;
    text(setting.post("/api/chat", &json!({"message": "Two?"})).await).await;
}

#[tokio::test]
async fn every_answer_keeps_browsers_strict() {
    let setting = setting([]);
    for path in ["/", "/app.js", "/style.css", "/healthz", "/nothing"] {
        let response = setting.get(path).await;
        let headers = response.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert!(
            headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"),
            "{path}"
        );
        assert!(!headers.contains_key("access-control-allow-origin"), "{path}");
    }
}

/// A cache would keep conversations on a disk, and show them to others.
#[tokio::test]
async fn no_cache_stores_an_answer() {
    let setting = setting(["Hi.", "Hi."].map(Answer::from_text));
    let no_store = HeaderValue::from_static("no-store");
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "user": "c1"});
    let whole = setting.post("/v1/chat/completions", &body).await;
    assert_eq!(whole.headers()["cache-control"], no_store);
    for path in ["", "/c1", "/unknown", "/c1/stream"].map(|end| format!("/api/conversations{end}")) {
        assert_eq!(setting.get(&path).await.headers()["cache-control"], no_store, "{path}");
    }
    for (path, body) in &bodies() {
        let setting = crate::setting::setting([Answer::new().text("It is").hang()]);
        let stream = setting.post(path, body).await;
        let joined = setting.get("/api/conversations/c1/stream").await;
        for response in [stream, joined, setting.get("/api/ui/c1/stream").await] {
            let caching = &response.headers()["cache-control"];
            assert_eq!((response.status(), caching), (StatusCode::OK, &no_store), "{path}");
        }
    }
    assert_eq!(
        setting.get("/app.js").await.headers()["cache-control"],
        "no-cache",
        "the page says it itself"
    );
}

/// A proxy on this machine may send `localhost` as the host, and the requests of everyone.
#[tokio::test]
async fn request_that_a_proxy_forwards_needs_a_token() {
    let forwarded = |setting: &Setting, token: &str| {
        let request = Request::get("/api/conversations").header("host", "localhost");
        let request = request.header("x-forwarded-for", "203.0.113.5").header("x-api-key", token);
        let sent = setting.server.router();
        let request = request.body(Body::empty()).unwrap();
        async move { tower::ServiceExt::oneshot(sent, request).await.unwrap() }
    };
    let code = refused(forwarded(&setting([]), "").await, StatusCode::FORBIDDEN).await;
    assert_eq!(code, "forbidden");
    let answered = forwarded(&with_tokens(setting([])), "the-token-of-ann").await;
    assert_eq!(answered.status(), StatusCode::OK);
}
