//! Clients of the AI SDK whose message was refused, and who try again.

use advisor_testkit::{Answer, Gate};
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, refused, setting, text, until};

fn asking(id: &str, text: &str, trigger: &str, replaced: Option<&str>) -> Value {
    let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"id": "c1", "messages": [message], "trigger": trigger, "messageId": replaced})
}

fn sending(id: &str) -> Value {
    asking(id, "And now?", "submit-message", None)
}

/// Returns a server that has refused message `u2`, since the conversation was busy.
async fn after_a_refusal(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let gate = Gate::new();
    let first = Answer::new().text("It is").gate(&gate).text(" sunny.").done();
    let setting = setting([first].into_iter().chain(answers));
    let (_, rest) = until(setting.post("/api/ui", &sending("u1")).await, "It is").await;
    let busy = setting.post("/api/ui", &sending("u2")).await;
    assert_eq!(refused(busy, StatusCode::CONFLICT).await, "conversation_busy");
    gate.release();
    drop(futures::StreamExt::collect::<Vec<_>>(rest).await);
    setting
}

/// Returns the texts of the messages of the conversation.
async fn texts(setting: &Setting) -> Vec<String> {
    let read = json_of(setting.get("/api/conversations/c1").await).await;
    let messages = read["messages"].as_array().unwrap();
    messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Nothing of the turn had begun, so the refusal is not its answer.
#[tokio::test]
async fn message_that_was_refused_is_sent_again() {
    let setting = after_a_refusal([Answer::from_text("It rains.")]).await;
    assert!(text(setting.post("/api/ui", &sending("u2")).await).await.contains("It rains."));
    assert!(text(setting.post("/api/ui", &sending("u2")).await).await.contains("It rains."));
    assert_eq!(texts(&setting).await, ["And now?", "It is sunny.", "And now?", "It rains."]);
}

/// `regenerate()` after a refusal begins the turn that memory never had, and a second one replaces its answer.
#[tokio::test]
async fn message_that_was_refused_is_answered_by_regenerating() {
    for replaced in [None, Some("u2"), Some("answer-x")] {
        let setting = after_a_refusal(["It rains.", "It snows."].map(Answer::from_text)).await;
        for answer in ["It rains.", "It snows."] {
            let again = asking("u2", "And now?", "regenerate-message", replaced);
            assert!(text(setting.post("/api/ui", &again).await).await.contains(answer), "{replaced:?}");
            let expected = ["And now?", "It is sunny.", "And now?", answer];
            assert_eq!(texts(&setting).await, expected, "{replaced:?}");
        }
    }
}

#[tokio::test]
async fn message_that_was_refused_is_edited() {
    let setting = after_a_refusal([Answer::from_text("It rains.")]).await;
    let edited = asking("u2", "And tomorrow?", "submit-message", Some("u2"));
    assert!(text(setting.post("/api/ui", &edited).await).await.contains("It rains."));
    assert_eq!(texts(&setting).await, ["And now?", "It is sunny.", "And tomorrow?", "It rains."]);
}
