//! Conversations that are read while a turn begins or ends.

use std::sync::{Arc, Mutex};

use advisor_core::async_trait;
use advisor_testkit::{Answer, Around, Asked, Gate, ScriptedModel, StoreAround, Work};
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::{StoreError, Version};
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, rest_of, setting_over, text, until};

/// Holds one operation at a gate: the next append before it, or the result of the next load.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Option<(Operation, Gate)>>>);

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Append,
    Load,
}

impl Held {
    fn next(&self, operation: Operation) -> Gate {
        let gate = Gate::new();
        *self.0.lock().unwrap() = Some((operation, gate.clone()));
        gate
    }

    fn take(&self, operation: Operation) -> Option<Gate> {
        let mut next = self.0.lock().unwrap();
        next.take_if(|(held, _)| *held == operation).map(|(_, gate)| gate)
    }
}

#[async_trait]
impl Around for Held {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        match asked {
            Asked::Append(_) => {
                if let Some(gate) = self.take(Operation::Append) {
                    gate.pass().await;
                }
                work.await
            }
            Asked::Load | Asked::Read => {
                let result = work.await;
                if let Some(gate) = self.take(Operation::Load) {
                    gate.pass().await;
                }
                result
            }
            _ => work.await,
        }
    }
}

fn setting(answer: Answer) -> (Setting, Held) {
    let held = Held::default();
    let store = StoreAround::with(Arc::new(InMemoryStore::new()), held.clone());
    (setting_over(store, ScriptedModel::new([answer])), held)
}

fn asking() -> Value {
    json!({"message": "How is it?", "conversation": "c1", "turn": "t1"})
}

const CONVERSATION: &str = "/api/conversations/c1";

/// The messages of a turn that has ended since they were loaded are not those of an interrupted one.
#[tokio::test]
async fn turn_that_ends_while_it_is_read_is_read_whole() {
    let model = Gate::new();
    let (setting, held) = setting(Answer::new().text("It is ").gate(&model).text("sunny.").done());
    let (_, body) = until(setting.post("/api/chat", &asking()).await, "It is").await;
    let load = held.next(Operation::Load);
    let end = async {
        load.reached().await;
        model.release();
        rest_of(body).await;
        load.release();
    };
    let (read, ()) = tokio::join!(setting.get(CONVERSATION), end);
    let read = json_of(read).await;
    assert_eq!(read["running"], Value::Null);
    assert_eq!(read["messages"][1]["text"], "It is sunny.");
}

/// A client that opens the conversation joins the turn by its id.
#[tokio::test]
async fn conversation_whose_first_input_is_not_stored_names_its_turn() {
    let (setting, held) = setting(Answer::from_text("It is sunny."));
    let append = held.next(Operation::Append);
    let read = async {
        append.reached().await;
        let read = setting.get(CONVERSATION).await;
        append.release();
        read
    };
    let (asked, read) = tokio::join!(async { text(setting.post("/api/chat", &asking()).await).await }, read);
    assert!(asked.contains("It is sunny."), "{asked}");
    assert_eq!(read.status(), StatusCode::OK);
    assert_eq!(json_of(read).await, json!({"messages": [], "running": "t1", "before": null, "waiting": []}));
}
