//! A tenant and the conversations and turns of another.

use advisor_core::Message;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::setting::{LIMIT, Setting, json_of, setting, text, until, with_tokens};

async fn ask(setting: &Setting, tenant: &str, body: Value) -> Response<Body> {
    setting.send(request(Method::POST, "/api/chat", tenant, body.to_string())).await
}

fn request(method: Method, path: &str, tenant: &str, body: String) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.header("authorization", format!("Bearer token-of-{tenant}")).body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let setting = with_tokens(setting([Answer::from_text("Hello, Ann.")]));
    text(ask(&setting, "ann", json!({"message": "I am Ann.", "conversation": "c1"})).await).await;
    let get = |path, tenant| request(Method::GET, path, tenant, String::new());
    let read = setting.send(get("/api/conversations/c1", "bob")).await;
    assert_eq!(read.status(), StatusCode::NOT_FOUND);
    for (tenant, expected) in [("bob", json!([])), ("ann", json!(["c1"]))] {
        let listed = json_of(setting.send(get("/api/conversations", tenant)).await).await;
        assert_eq!(listed["conversations"], expected);
    }
}

/// Nothing that a tenant does under the ids of another's conversation and turn reaches them.
#[tokio::test]
async fn tenant_cannot_reach_a_turn_of_another() {
    let gate = Gate::new();
    let answers =
        [Answer::new().text("Hello, ").gate(&gate).text("Ann.").done(), Answer::from_text("Hello, Bob.")];
    let setting = with_tokens(setting(answers));
    let anns = json!({"message": "I am Ann.", "conversation": "c1", "turn": "t1"});
    let (_, rest) = until(ask(&setting, "ann", anns).await, "Hello, ").await;
    for (method, path) in [
        (Method::GET, "/api/conversations/c1/stream"),
        (Method::GET, "/api/ui/c1/stream"),
        (Method::POST, "/api/conversations/c1/stop"),
        (Method::DELETE, "/api/conversations/c1"),
    ] {
        let response = setting.send(request(method.clone(), path, "bob", String::new())).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT, "{method} {path}");
    }
    let mut by_id = request(Method::GET, "/api/conversations/c1/stream", "bob", String::new());
    by_id.headers_mut().insert("x-turn-id", "t1".parse().unwrap());
    assert_eq!(setting.send(by_id).await.status(), StatusCode::NO_CONTENT);
    let replacing = json!({"message": "No.", "conversation": "c1", "replaces": "t1"});
    assert_eq!(ask(&setting, "bob", replacing).await.status(), StatusCode::NOT_FOUND);
    // The same ids are a conversation and a turn of his own.
    let bobs =
        text(ask(&setting, "bob", json!({"message": "I am Bob.", "conversation": "c1", "turn": "t1"})).await);
    assert!(bobs.await.contains("Hello, Bob."));
    let sent: Vec<_> = setting.model.prompts()[1].messages.iter().map(Message::text).collect();
    assert_eq!(sent, ["I am Bob."]);
    gate.release();
    let rest = tokio::time::timeout(LIMIT, axum::body::to_bytes(Body::from_stream(rest), usize::MAX)).await;
    let rest = String::from_utf8(rest.unwrap().unwrap().to_vec()).unwrap();
    assert!(rest.contains("Ann.") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    let read = setting.send(request(Method::GET, "/api/conversations/c1", "ann", String::new())).await;
    assert_eq!(json_of(read).await["messages"][1]["text"], "Hello, Ann.");
}
