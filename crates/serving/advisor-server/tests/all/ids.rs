//! Ids of clients that look like paths, headers or nothing at all.

use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use crate::disconnects::bodies;
use crate::setting::{json_of, post, refused, setting, text, texts_of, told};

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
        for (path, mut body) in bodies() {
            // Elsewhere, the id is a header.
            let Some(field) =
                ["conversation", "id", "threadId"].into_iter().find(|field| body.get(field).is_some())
            else {
                continue;
            };
            body[field] = json!(id);
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

#[tokio::test]
async fn invalid_escapes_are_refused() {
    let setting = setting([]);
    for id in ["%ff", "%c3%28"] {
        let request = Request::get(format!("/api/conversations/{id}")).body(Body::empty()).unwrap();
        refused(setting.send(request).await, StatusCode::BAD_REQUEST).await;
    }
}

/// Returns the headers of a route that have an id.
fn headers_of(path: &str) -> &'static [&'static str] {
    match path {
        "/api/chat" | "/api/chunks" => &["idempotency-key"],
        "/api/ui" | "/api/ag-ui" => &[],
        _ => &["idempotency-key", "x-conversation-id"],
    }
}

/// An ignored id would begin another conversation, run a turn twice, or send all events again.
#[tokio::test]
async fn ids_in_headers_are_refused_if_not_ascii() {
    let stream = "/api/conversations/c1/stream";
    let joining = ["last-event-id", "x-turn-id"].map(|name| (Method::GET, stream, name, String::new()));
    let asking = bodies().into_iter().flat_map(|(path, body)| {
        headers_of(path).iter().map(move |name| (Method::POST, path, *name, body.to_string()))
    });
    for (method, path, name, body) in asking.chain(joining) {
        // `Zürich` in Latin-1 and in UTF-8.
        for odd in [b"Z\xfcrich", "Zürich".as_bytes()] {
            let setting = setting([Answer::from_text("Hi.")]);
            let request = Request::builder().method(method.clone()).uri(path);
            let request = request.header("content-type", "application/json").header(name, odd);
            let response = setting.send(request.body(Body::from(body.clone())).unwrap()).await;
            let message = told(response, StatusCode::BAD_REQUEST).await;
            assert!(message.contains(&format!("`{name}`")), "{path}: {message}");
            assert_eq!(setting.model.calls(), 0, "{path} {name}");
        }
    }
}
