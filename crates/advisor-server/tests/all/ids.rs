//! Ids of clients that look like paths, headers or nothing at all.

use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::setting::{json_of, post, refused, setting, text, texts_of};

/// Percent-encodes every byte.
fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

const ODD: [&str; 10] = [
    "..", ".", "../../etc/passwd", "a/../b", "..\\..\\b", "%2e%2e", "c1\n", "a\r\nset-cookie: a=b", "'; --",
    "💥",
];

/// An id is a name and nothing else: each names its own conversation, and no other.
#[tokio::test]
async fn odd_ids_name_their_own_conversation() {
    let setting = setting((0..ODD.len()).map(|number| Answer::from_text(format!("Answer {number}."))));
    for id in ODD {
        let response = setting.post("/api/chat", &json!({"message": id, "conversation": id})).await;
        assert_eq!(response.status(), StatusCode::OK, "{id:?}");
        assert!(!response.headers().contains_key("set-cookie"), "{id:?}");
        text(response).await;
    }
    for (number, id) in ODD.iter().enumerate() {
        let read = json_of(setting.get(&format!("/api/conversations/{}", encoded(id))).await).await;
        assert_eq!(texts_of(&read), [(*id).to_owned(), format!("Answer {number}.")], "{id:?}");
    }
}

/// A path that is not encoded is not the route of a conversation.
#[tokio::test]
async fn paths_are_not_resolved() {
    let setting = setting([Answer::from_text("One.")]);
    text(setting.post("/api/chat", &json!({"message": "One?", "conversation": "b"})).await).await;
    for path in [
        "/api/conversations/a/../b",
        "/api/conversations/../conversations/b",
        "/api/conversations/./b",
        "/api/conversations//b",
        "//api/conversations/b",
        "/api/conversations/..%2fb",
        "/api/conversations/a%2f..%2fb",
        "/api/conversations/b%2f",
        "/app.js/../api/conversations/b",
        "/%2e%2e/api/conversations/b",
    ] {
        let response = setting.get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn ids_that_no_store_takes_are_refused() {
    let setting = setting([]);
    for id in ["a\0b".to_owned(), "\0".into(), "x".repeat(513), "ä".repeat(257), "x".repeat(50_000)] {
        let bodies = [
            ("/api/chat", json!({"message": "Hi", "conversation": id})),
            ("/api/chunks", json!({"message": "Hi", "conversation": id})),
            ("/api/ui", json!({"id": id, "messages": [user()]})),
            ("/api/ag-ui", json!({"threadId": id, "runId": "r1", "messages": [user()]})),
            ("/v1/responses", json!({"input": "Hi", "conversation": id})),
        ];
        for (path, body) in bodies {
            let code = refused(setting.post(path, &body).await, StatusCode::BAD_REQUEST).await;
            assert_eq!(code, "invalid_request", "{path}");
        }
        let id = encoded(&id);
        if id.len() > 60_000 {
            continue; // No `Uri` is that long.
        }
        for path in ["/api/conversations/{}", "/api/conversations/{}/stream", "/api/ui/{}/stream"] {
            let response = setting.get(&path.replace("{}", &id)).await;
            assert_eq!(refused(response, StatusCode::BAD_REQUEST).await, "invalid_request", "{path}");
        }
        let stop = post(&format!("/api/conversations/{id}/stop")).body(Body::empty()).unwrap();
        refused(setting.send(stop).await, StatusCode::BAD_REQUEST).await;
        let after = setting.get(&format!("/api/conversations?after={id}")).await;
        refused(after, StatusCode::BAD_REQUEST).await;
    }
    assert_eq!(setting.model.calls(), 0);
}

fn user() -> Value {
    json!({"id": "u1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]})
}

#[tokio::test]
async fn invalid_escapes_are_refused() {
    let setting = setting([]);
    for id in ["%ff", "%c3%28"] {
        let request = Request::get(format!("/api/conversations/{id}")).body(Body::empty()).unwrap();
        refused(setting.send(request).await, StatusCode::BAD_REQUEST).await;
    }
}
