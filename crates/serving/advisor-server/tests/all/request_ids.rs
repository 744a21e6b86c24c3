//! Each response, error and span has the id of its request.

use std::sync::OnceLock;

use advisor_core::{Error, ErrorKind};
use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::json;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::setting::{Log, json_of, post, setting, text, with_tokens};

fn id_of(response: &Response<Body>) -> String {
    response.headers()["x-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_response_has_an_id() {
    let setting = setting([Answer::from_text("Hi.")]);
    for path in ["/", "/healthz", "/v1/models", "/nothing"] {
        let sent = Request::get(path).header("x-request-id", "sent-1").body(Body::empty()).unwrap();
        assert_eq!(id_of(&setting.send(sent).await), "sent-1", "{path}");
        let (first, second) = (setting.get(path).await, setting.get(path).await);
        assert_ne!(id_of(&first), id_of(&second), "{path}");
        let odd = Request::get(path).header("x-request-id", "a b").body(Body::empty()).unwrap();
        assert_ne!(id_of(&setting.send(odd).await), "a b", "{path}");
    }
    let streamed = setting.post("/api/chat", &json!({"message": "Hello"})).await;
    assert_eq!(id_of(&streamed).len(), 36);
}

/// Anthropic's clients read the id from a header of their own.
#[tokio::test]
async fn answer_for_anthropic_has_both_ids() {
    let setting = setting([Answer::from_text("Hi."), Answer::from_text("Hi.")]);
    for stream in [false, true] {
        let messages = json!([{"role": "user", "content": "Hello"}]);
        let ask = json!({"model": "chain", "max_tokens": 9, "messages": messages, "stream": stream});
        let response = setting.post("/v1/messages", &ask).await;
        assert_eq!(response.headers()["request-id"], id_of(&response));
    }
    assert!(!setting.get("/v1/models").await.headers().contains_key("request-id"));
}

#[tokio::test]
async fn every_error_names_its_request() {
    let failing = |kind| setting([Answer::refused(Error::new(kind, "canary"))]);
    let asking = || post("/api/chat").body(Body::from(json!({"message": "Hello"}).to_string())).unwrap();
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let small = setting([]).limited(|limits| limits.body_bytes = 10);
    let delete = Request::builder().method(Method::DELETE).uri("/api/chat").body(Body::empty()).unwrap();
    for (setting, request, status) in [
        (setting([]), get("/nothing"), StatusCode::NOT_FOUND),
        (setting([]), delete, StatusCode::METHOD_NOT_ALLOWED),
        (setting([]), get("/api/conversations/unknown"), StatusCode::NOT_FOUND),
        (setting([]), get("/api/conversations?after=a&after=b"), StatusCode::BAD_REQUEST),
        (setting([]), get("/api/conversations/%ff"), StatusCode::BAD_REQUEST),
        (with_tokens(setting([])), get("/v1/models"), StatusCode::UNAUTHORIZED),
        (small, asking(), StatusCode::PAYLOAD_TOO_LARGE),
        (failing(ErrorKind::Connection), asking(), StatusCode::BAD_GATEWAY),
        (failing(ErrorKind::Advisor), asking(), StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let response = setting.send(request).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["content-type"], "application/json", "{status}");
        let id = id_of(&response);
        let body = json_of(response).await;
        assert_eq!(body["error"]["request_id"], id, "{body}");
        assert!(body["error"]["code"].is_string() && !body.to_string().contains("canary"), "{body}");
    }
}

/// The place is that of an error status. Streams of the other routes name the request in their header alone.
#[tokio::test]
async fn failure_within_an_answer_has_the_id_where_a_status_has_it() {
    for (path, place) in [
        ("/v1/chat/completions", "/error/request_id"),
        ("/v1/responses", "/response/error/request_id"),
        ("/v1/messages", "/request_id"),
    ] {
        let broken = Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "canary"));
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let body = json!({"messages": messages, "input": "Hi", "stream": true});
        let response = setting([broken]).post(path, &body).await;
        let id = id_of(&response);
        let frames = advisor_sse::Frame::read_all(&text(response).await);
        let mut named = frames.iter().filter_map(|frame| Some(frame.json()?.pointer(place)?.clone()));
        assert_eq!(named.next(), Some(json!(id)), "{path}: {frames:?}");
    }
}

#[tokio::test]
async fn every_span_is_inside_that_of_its_request() {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let all = tracing_subscriber::fmt().with_ansi(false).with_span_events(FmtSpan::NEW);
        tracing::subscriber::set_global_default(all.with_writer(move || writer.clone()).finish()).unwrap();
        log
    });
    let call = Answer::new().call("t1", "weather", "{}").done();
    let failing = Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "broken"));
    let setting = setting([call, failing]);
    let body = json!({"message": "How is it?"}).to_string();
    let request = post("/api/chat").header("x-request-id", "spans-1").body(Body::from(body)).unwrap();
    text(setting.send(request).await).await;
    // Each line has the spans around it.
    let of_request: Vec<_> =
        log.text().lines().filter(|line| line.contains("spans-1")).map(str::to_owned).collect();
    for name in [" http_request{", ":turn{", ":model_call{", " WARN "] {
        assert!(of_request.iter().any(|line| line.contains(name)), "{name} is not in {of_request:#?}");
    }
}
