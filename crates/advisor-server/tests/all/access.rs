//! Tokens, tenants, hosts, bounds and bad requests.

use advisor_server::ServerLimits;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode};
use serde_json::json;

use crate::disconnects::bodies;
use crate::setting::{Setting, json_of, post, refused, setting, text, until, with_tokens};

#[tokio::test]
async fn requests_without_a_known_token_are_refused() {
    let setting = with_tokens(setting([]));
    for path in ["/api/conversations", "/v1/models", "/api/conversations/c1", "/api/conversations/c1/stream"]
    {
        for token in [None, Some("Bearer wrong"), Some("the-token-of-ann"), Some("Bearer ")] {
            let request = token
                .into_iter()
                .fold(Request::get(path), |request, token| request.header("authorization", token));
            let code =
                refused(setting.send(request.body(Body::empty()).unwrap()).await, StatusCode::UNAUTHORIZED)
                    .await;
            // Clients of OpenAI look for their own code.
            assert_eq!(code, if path == "/v1/models" { "invalid_api_key" } else { "unauthorized" });
        }
    }
    assert_eq!(setting.model.calls(), 0);
}

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
async fn large_deep_and_broken_bodies_are_refused() {
    let Setting { server, model } = setting([]);
    let mut limits = ServerLimits::default();
    limits.body_bytes = 4_096;
    let setting = Setting { server: server.with_limits(limits), model };
    let large = json!({"message": "x".repeat(5_000)}).to_string();
    let deep = format!("{{\"messages\":[],\"tools\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
    let request = post("/v1/chat/completions").body(Body::from(deep)).unwrap();
    refused(setting.send(request).await, StatusCode::BAD_REQUEST).await;
    for (body, status, code) in [
        (large, StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
        ("{\"message\"".into(), StatusCode::BAD_REQUEST, "invalid_request"),
        ("{}".into(), StatusCode::BAD_REQUEST, "invalid_request"),
        ("{\"message\":\" \"}".into(), StatusCode::BAD_REQUEST, "invalid_request"),
    ] {
        let request = post("/api/chat").body(Body::from(body)).unwrap();
        assert_eq!(refused(setting.send(request).await, status).await, code);
    }
    let no_json = Request::post("/api/chat")
        .header("content-type", "text/plain")
        .body(Body::from("{\"message\":\"x\"}"));
    refused(setting.send(no_json.unwrap()).await, StatusCode::UNSUPPORTED_MEDIA_TYPE).await;
    assert_eq!(setting.model.calls(), 0);
}

#[tokio::test]
async fn more_turns_than_allowed_are_refused() {
    let gate = Gate::new();
    let Setting { server, model } =
        setting([Answer::new().text("It").gate(&gate).done(), Answer::from_text("Yes.")]);
    let mut limits = ServerLimits::default();
    limits.running_turns = 1;
    let setting = Setting { server: server.with_limits(limits), model };
    let (_, first) = until(setting.post("/api/chat", &json!({"message": "One?"})).await, "It").await;
    let second = setting.post("/api/chat", &json!({"message": "Two?"})).await;
    assert_eq!(second.headers()["retry-after"], "1");
    assert_eq!(refused(second, StatusCode::TOO_MANY_REQUESTS).await, "too_many_turns");
    gate.release();
    drop(axum::body::to_bytes(Body::from_stream(first), usize::MAX).await);
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

/// The README lists the routes that need no token, beside the files of the page.
#[tokio::test]
async fn open_routes_are_those_of_the_readme() {
    let setting = with_tokens(setting([]));
    let readme = include_str!("../../README.md");
    let line = readme.lines().find(|line| line.contains("need no token")).unwrap();
    let listed: Vec<_> = line.split('`').filter(|word| word.starts_with('/')).collect();
    assert_eq!(listed, ["/", "/healthz", "/readyz", "/openapi.json"]);
    for path in listed {
        assert_eq!(setting.get(path).await.status(), StatusCode::OK, "{path}");
    }
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
