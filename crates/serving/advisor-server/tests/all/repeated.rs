//! Requests that are sent again: with the same place in the conversation, and with another one.

use advisor_core::{Error, ErrorKind};
use advisor_testkit::{Answer, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use serde_json::json;

use crate::setting::{refused, setting, setting_over, text, told};

/// The replaced turn is a part of the request, like the message.
#[tokio::test]
async fn same_turn_in_another_place_is_refused() {
    let setting = setting(["One.", "Two."].map(Answer::from_text));
    let ask = |turn: &str, replaces: Option<&str>| json!({"message": "Hi", "conversation": "c1", "turn": turn, "replaces": replaces});
    for turn in ["a", "b"] {
        text(setting.post("/api/chat", &ask(turn, None)).await).await;
    }
    let elsewhere = setting.post("/api/chat", &ask("b", Some("a"))).await;
    assert_eq!(refused(elsewhere, StatusCode::UNPROCESSABLE_ENTITY).await, "turn_id_reused");
    let again = text(setting.post("/api/chat", &ask("b", None)).await).await;
    assert!(again.contains("Two."), "{again}");
    assert_eq!(setting.texts().await, ["Hi", "One.", "Hi", "Two."]);
}

/// The reason of a refused id is in the answer: what the server knows of the turn, and what memory has.
#[tokio::test]
async fn reused_turn_id_gives_its_reason() {
    let failing = Answer::refused(Error::new(ErrorKind::Connection, "down"));
    let store = InMemoryStore::new();
    let here = setting_over(store.clone(), ScriptedModel::new([failing, Answer::from_text("Two.")]));
    let ask = |turn: &str, text: &str| json!({"message": text, "conversation": "c1", "turn": turn});
    text(here.post("/api/chat", &ask("a", "Hi")).await).await;
    text(here.post("/api/chat", &ask("b", "Hi")).await).await;
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
    let other = told(here.post("/api/chat", &ask("b", "Bye")).await, unprocessable).await;
    assert!(other.contains("another input") && other.contains("a new id"), "{other}");
    // Another process knows the turn from the store alone.
    let elsewhere = setting_over(store, ScriptedModel::new([]));
    let stopped = told(elsewhere.post("/api/chat", &ask("a", "Hi")).await, unprocessable).await;
    assert!(stopped.contains("has gone on without it") && stopped.contains("a new id"), "{stopped}");
}

/// A request of `useChat` that is sent again is answered once, also one that replaces a turn.
#[tokio::test]
async fn repeated_edit_is_answered_once() {
    let setting =
        setting(["One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven."].map(Answer::from_text));
    let ask = async |text_of: &str, trigger: &str, id: Option<&str>| {
        let message = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": text_of}]});
        let body = json!({"id": "c1", "messages": [message], "trigger": trigger, "messageId": id});
        let response = setting.post("/api/ui", &body).await;
        let turn = response.headers()["x-turn-id"].to_str().unwrap().to_owned();
        (turn, text(response).await)
    };
    ask("How?", "submit-message", None).await;
    let edited = ask("Why?", "submit-message", Some("u1")).await;
    assert_eq!(ask("Why?", "submit-message", Some("u1")).await, edited);
    let answer = format!("answer-{}", edited.0);
    let regenerated = ask("Why?", "regenerate-message", Some(&answer)).await;
    assert_eq!(ask("Why?", "regenerate-message", Some(&answer)).await, regenerated);
    assert_eq!(setting.texts().await, ["Why?", "Three."]);
    // Edited again, and edited back, they are new messages.
    ask("Who?", "submit-message", Some("u1")).await;
    ask("Why?", "submit-message", Some("u1")).await;
    assert_eq!(setting.texts().await, ["Why?", "Five."]);
    // Without the id of the answer, it is a further regeneration.
    for answer in ["Six.", "Seven."] {
        let (_, events) = ask("Why?", "regenerate-message", None).await;
        assert!(events.contains(answer), "{events}");
    }
    assert_eq!(setting.model.calls(), 7);
}
