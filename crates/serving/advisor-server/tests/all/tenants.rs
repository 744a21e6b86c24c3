//! A tenant and the conversations and turns of another.

use advisor_core::Message;
use advisor_server::ServerLimits;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::disconnects::bodies;
use crate::setting::{Setting, json_of, post_in, refused, rest_of, setting, text, until, with_tokens};

async fn ask(setting: &Setting, tenant: &str, body: Value) -> Response<Body> {
    setting.send(request(Method::POST, "/api/chat", tenant, body.to_string())).await
}

fn request(method: Method, path: &str, tenant: &str, body: String) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.header("authorization", format!("Bearer the-token-of-{tenant}")).body(Body::from(body)).unwrap()
}

/// The same id is another conversation, on every route.
#[tokio::test]
async fn tenant_does_not_continue_a_conversation_of_another() {
    for (path, body) in &bodies() {
        let setting =
            with_tokens(setting([Answer::from_text("Hello, Ann."), Answer::from_text("Hello, Bob.")]));
        text(ask(&setting, "ann", json!({"message": "I am Ann.", "conversation": "c1"})).await).await;
        let asking = post_in(path, body).header("authorization", "Bearer the-token-of-bob");
        let asking = asking.body(Body::from(body.to_string())).unwrap();
        assert!(text(setting.send(asking).await).await.contains("Hello, Bob."), "{path}");
        let sent: Vec<_> = setting.model.prompts()[1].messages.iter().map(Message::text).collect();
        assert_eq!(sent, ["Hi"], "{path}");
        for (tenant, expected) in [("ann", "Hello, Ann."), ("bob", "Hello, Bob.")] {
            let read = request(Method::GET, "/api/conversations/c1", tenant, String::new());
            let read = json_of(setting.send(read).await).await;
            assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{path}: {read}");
            assert_eq!(read["messages"][1]["text"], expected, "{path}");
        }
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
    let rest = rest_of(rest).await;
    assert!(rest.contains("Ann.") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    let read = setting.send(request(Method::GET, "/api/conversations/c1", "ann", String::new())).await;
    assert_eq!(json_of(read).await["messages"][1]["text"], "Hello, Ann.");
}

/// Returns a server for both tenants, with limits of one turn each.
fn with_one_turn_each(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let one_each = |limits: &mut ServerLimits| {
        (limits.running_turns_per_tenant, limits.ended_turns_per_tenant) = (1, 1);
    };
    with_tokens(setting(answers)).limited(one_each)
}

#[tokio::test]
async fn law_r1_tenant_leaves_running_turns_to_others() {
    let gate = Gate::new();
    let waiting = Answer::new().text("It").gate(&gate).done();
    let setting = with_one_turn_each([waiting, Answer::from_text("Hello, Bob."), Answer::from_text("Yes.")]);
    let (_, rest) = until(ask(&setting, "ann", json!({"message": "One?"})).await, "It").await;
    let second = ask(&setting, "ann", json!({"message": "Two?"})).await;
    assert_eq!(second.headers()["retry-after"], "1");
    assert_eq!(refused(second, StatusCode::TOO_MANY_REQUESTS).await, "too_many_turns");
    assert!(text(ask(&setting, "bob", json!({"message": "One?"})).await).await.contains("Hello, Bob."));
    gate.release();
    rest_of(rest).await;
    assert!(text(ask(&setting, "ann", json!({"message": "Two?"})).await).await.contains("Yes."));
}

#[tokio::test]
async fn law_r1_tenant_leaves_ended_turns_to_others() {
    let setting = with_one_turn_each((0..4).map(|_| Answer::from_text("Hi.")));
    let body = |turn: &str| json!({"message": "Hello", "conversation": "c1", "turn": turn});
    for (tenant, turn) in [("bob", "t1"), ("ann", "t1"), ("ann", "t2"), ("ann", "t3")] {
        text(ask(&setting, tenant, body(turn)).await).await;
    }
    for (tenant, turn, status) in [
        ("bob", "t1", StatusCode::OK),
        ("ann", "t1", StatusCode::NO_CONTENT),
        // The surplus goes when the next turn starts.
        ("ann", "t2", StatusCode::OK),
        ("ann", "t3", StatusCode::OK),
    ] {
        let mut joining = request(Method::GET, "/api/conversations/c1/stream", tenant, String::new());
        joining.headers_mut().insert("x-turn-id", turn.parse().unwrap());
        assert_eq!(setting.send(joining).await.status(), status, "{tenant} {turn}");
    }
}
