//! Turns that go on without their clients, since the application finishes dropped turns.

use std::pin::pin;

use advisor_core::{OnDrop, Spawner};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use futures::future::{Either, select};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tool_call_advisor::FnTool;

use crate::approvals::{definition, paying};
use crate::disconnects::{bodies, endless};
use crate::setting::{LIMIT, Setting, post_in, refused, setting_with, text, until};

fn finishing(answers: impl IntoIterator<Item = Answer>) -> Setting {
    setting_with(InMemoryStore::new(), ScriptedModel::new(answers), OnDrop::FinishTurn)
}

/// The turn of a client that vanishes goes on, on every route. It counts as one that runs until it has ended.
#[tokio::test]
async fn turn_of_a_vanished_client_is_finished() {
    for (path, body) in &bodies() {
        let gate = Gate::new();
        let setting = finishing([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
        let setting = setting.limited(|limits| limits.running_turns = 1);
        let (_, rest) = until(setting.post(path, body).await, "It is ").await;
        drop(rest);
        let other = setting.post("/api/chat", &json!({"message": "Hi", "conversation": "c2"})).await;
        assert_eq!(refused(other, StatusCode::TOO_MANY_REQUESTS).await, "too_many_turns", "{path}");
        let joined = setting.get("/api/conversations/c1/stream").await;
        assert_eq!(joined.status(), StatusCode::OK, "{path}");
        gate.release();
        assert!(text(joined).await.contains("sunny."), "{path}");
        assert_eq!(setting.texts().await[1], "It is sunny.", "{path}");
    }
}

/// A turn may be rolled back instead, on every route. The next one does not know its text.
#[tokio::test]
async fn turn_of_a_vanished_client_is_rolled_back() {
    for (path, body) in &bodies() {
        let (waiting, dropped) = endless();
        let answers = [Answer::new().text("It is").wait(waiting), Answer::from_text("Here.")];
        let setting = setting_with(InMemoryStore::new(), ScriptedModel::new(answers), OnDrop::Rollback);
        // Two routes have this header, since their turns go on without it.
        let request = post_in(path, body).header("x-on-disconnect", "stop").body(body.to_string().into());
        let (_, rest) = until(setting.send(request.unwrap()).await, "It is").await;
        drop(rest);
        tokio::time::timeout(LIMIT, dropped).await.expect(path).unwrap();
        let next = json!({"message": "And now?", "conversation": "c1"});
        assert!(text(setting.post("/api/chat", &next).await).await.contains("Here."), "{path}");
        let sent = setting.model.prompts().pop().unwrap().messages;
        assert!(sent.iter().all(|message| !message.text().contains("It is")), "{path}: {sent:?}");
    }
}

/// A server whose tool `pay` waits for an approval, and then for the gate.
fn till(gate: &Gate) -> Setting {
    let gate = gate.clone();
    let pay = FnTool::new(definition("pay"), move |_: Value| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok("paid")
        }
    });
    let answers = [Answer::from_calls([("c1", "pay", "{}")]), Answer::from_text("Paid.")];
    paying(answers, pay, |client| {
        client.on_drop(OnDrop::FinishTurn).spawner(Spawner::tokio(Handle::current()))
    })
}

/// The result of an approved call is stored, although its client has vanished.
#[tokio::test]
async fn law_k3_approved_call_of_a_vanished_client_is_finished() {
    let gate = Gate::new();
    let setting = till(&gate);
    text(setting.post("/api/chunks", &json!({"message": "Pay.", "conversation": "c1"})).await).await;
    let waiting = setting.read().await["waiting"][0].clone();
    let decision = json!({"key": waiting["key"], "tool": "pay", "arguments": "{}", "verdict": "approved"});
    let body = json!({"conversation": "c1", "decisions": [decision]});
    let asked = Box::pin(setting.post("/api/chunks", &body));
    let reached = pin!(tokio::time::timeout(LIMIT, gate.reached()));
    let Either::Right((reached, asked)) = select(asked, reached).await else {
        panic!("the tool does not wait");
    };
    reached.unwrap();
    drop(asked);
    let joined = tokio::join!(setting.get("/api/conversations/c1/stream"), async { gate.release() }).0;
    assert!(text(joined).await.contains("Paid."));
    let sent = setting.model.prompts().pop().unwrap().messages;
    let results = sent.iter().filter_map(|message| Some(message.tool_result()?.text()));
    assert_eq!(results.collect::<Vec<_>>(), ["paid"]);
}
