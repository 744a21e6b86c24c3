//! Tests of `turn`.

use advisor_core::{ChatClient, ChatRequest, ConversationKey, FinishReason, Turn};
use conversation_store::{ConversationStore, InMemoryStore, ReadRange};

use super::*;
use crate::tests::{answer, calls, turn, user};

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// The memory of a turn `t` with the input `u`.
struct Recorded {
    store: InMemoryStore,
    memory: TurnMemory,
}

impl Recorded {
    fn new() -> Self {
        let store = InMemoryStore::new();
        let request = ChatRequest {
            conversation: Some(key()),
            turn: Turn::new(turn("t")),
            ..ChatRequest::new(user("u"))
        };
        let memory = TurnMemory::new(&Settings::new(Arc::new(store.clone())), &request, key());
        Self { store, memory }
    }

    async fn started() -> Self {
        let recorded = Self::new();
        let mut request = ChatRequest {
            conversation: Some(key()),
            turn: Turn::new(turn("t")),
            ..ChatRequest::new(user("u"))
        };
        let model =
            ChatClient::builder(advisor_testkit::ScriptedModel::new([])).build().unwrap().chain().clone();
        recorded.memory.enter(&mut request, &model).await.unwrap();
        recorded
    }

    async fn record(&self, step: Step, messages: Vec<Message>) {
        self.memory.record(&Record::new(1, step, messages)).await.unwrap();
    }

    async fn stored(&self) -> Vec<String> {
        let log = self.store.load(&key(), ReadRange::All).await.unwrap().entries;
        log.iter().filter_map(|entry| Some(entry.kind.as_message()?.text())).collect()
    }
}

fn completed() -> TurnEnd {
    TurnEnd::Completed(FinishReason::Stop)
}

#[tokio::test]
async fn completed_turn_whose_start_failed_is_stored_whole() {
    let recorded = Recorded::new();
    *recorded.memory.0.stage.lock().await = Stage::Starting(vec![user("u")]);
    recorded.record(Step::End(completed()), vec![answer("An advisor answers.")]).await;
    assert_eq!(recorded.stored().await, ["u", "An advisor answers."]);
}

#[tokio::test]
async fn law_m1_missing_answer_stands_between_two_user_messages() {
    let no_answer = crate::transcript::texts::NO_ANSWER;
    for (between, stored) in [
        (Step::Answer, vec!["u", no_answer, "v", no_answer, "w"]),
        (Step::Injected, vec!["u", no_answer, "v", "w"]),
    ] {
        let recorded = Recorded::started().await;
        recorded.record(Step::Injected, vec![user("v")]).await;
        recorded.record(between.clone(), Vec::new()).await;
        recorded.record(Step::Injected, vec![user("w")]).await;
        assert_eq!(recorded.stored().await, stored, "{between:?}");
    }
}

#[tokio::test]
async fn injected_answer_is_stored_once() {
    let recorded = Recorded::started().await;
    let injected = answer("as before");
    for _ in 0..2 {
        recorded.record(Step::Injected, vec![injected.clone()]).await;
    }
    assert_eq!(recorded.stored().await, ["u", "as before"]);
}

#[tokio::test]
async fn law_k3_end_is_kept_while_step_is_written() {
    let recorded = Recorded::started().await;
    let _writes = recorded.memory.0.stage.lock().await;
    let stopped = recorded.memory.0.stopped(1, &TurnEnd::RolledBack).unwrap();
    assert_eq!(stopped.end, TurnEnd::RolledBack);
}

#[test]
fn messages_injected_before_the_first_request_are_said_once() {
    let (known, new) = (user("u"), user("v"));
    let mut said = vec![known.clone()];
    await_injected(&mut said, &[known, new.clone(), new]);
    assert_eq!(said.iter().map(Message::text).collect::<Vec<_>>(), ["u", "v"]);
}

#[test]
fn calls_of_an_answered_turn_are_refused() {
    let refused = |step, messages| refuse_calls(&Record::new(1, step, messages), ANSWERED_BEFORE).is_err();
    assert!(refused(Step::Answer, vec![calls(&["1"])]));
    assert!(refused(Step::Results, Vec::new()) && refused(Step::Started(Vec::new()), Vec::new()));
    assert!(!refused(Step::Answer, vec![answer("a")]));
    assert!(!refused(Step::End(completed()), vec![answer("a")]));
}
