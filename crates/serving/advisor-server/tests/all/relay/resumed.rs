//! Clients that reconnect at another process.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use advisor_server::{ServerLimits, TurnRelay};
use advisor_sse::Frame;
use advisor_testkit::{Answer, Around, Asked, FaultStore, Gate, StoreAround, StoreFault, Work};
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::{ConversationStore, EntryId, EntryKind, StoreError, Version};
use futures::StreamExt;
use serde_json::{Value, json};

use super::contract::run_of;
use super::processes::{State, asking, joining, read_to_end, running, two, two_over};
use crate::setting::{rest_of, text, until};

fn answer(gate: &Gate) -> [Answer; 2] {
    let call = Answer::new().text("Let me look.").call("w1", "weather", "{}").done();
    [call, Answer::new().text("It ").text("is ").gate(gate).text("sunny.").done()]
}

/// Each event of the page is a position from which the rest is read elsewhere.
#[tokio::test(start_paused = true)]
async fn client_resumes_elsewhere_at_every_position() {
    let gate = Gate::new();
    let two = two(answer(&gate));
    let (shown, rest) = until(two.begin().await, "is ").await;
    let mut resumed = Vec::new();
    for frame in Frame::read_all(&shown) {
        let id = frame.id.unwrap();
        resumed.push((two.second.send(joining(Some(&id))).await, id));
    }
    assert!(resumed.len() > 4, "{shown}");
    let from_the_beginning = two.second.send(joining(None)).await;
    gate.release();
    let whole = shown + &rest_of(rest).await;
    assert!(whole.ends_with("data: [DONE]\n\n"));
    assert_eq!(text(from_the_beginning).await, whole);
    for (response, id) in resumed {
        assert_eq!(response.status(), StatusCode::OK);
        let rest = text(response).await;
        let behind = whole.split_once(&format!("id: {id}\n")).unwrap().1.split_once("\n\n").unwrap().1;
        assert_eq!(rest, behind, "behind {id}");
    }
    assert_eq!(two.second.send(joining(None)).await.status(), StatusCode::NO_CONTENT, "nothing runs");
    assert_eq!(read_to_end(&two.second).await, whole, "an ended turn is read by its id");
    assert_eq!(two.model.calls(), 2);
}

/// A turn that waits here, such as for its conversation, is not the running one.
#[tokio::test(start_paused = true)]
async fn turn_that_waits_here_is_not_the_running_one() {
    let store = FaultStore::new(InMemoryStore::new());
    store.fail_at(0, StoreFault::HangBefore);
    let two = two_over(store, [], ServerLimits::default());
    two.ways[1].begin(&run_of("default", "c1", "t1", 9)).await.unwrap();
    let _waiting = two.first.post("/api/chat", &asking("t2")).await;
    assert_eq!(running(&two.first).await, "t1");
    // Without the relay, it is the only one that is known.
    two.ways[0].set(State::Down);
    assert_eq!(running(&two.first).await, "t2");
}

/// The relay learns of an end after the process itself.
#[tokio::test(start_paused = true)]
async fn turn_that_has_ended_here_does_not_run() {
    let gate = Gate::new();
    let two = two([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let (_, rest) = until(two.begin().await, "It is ").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    two.ways[0].set(State::Down);
    gate.release();
    rest_of(rest).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    two.ways[0].set(State::Open);
    assert_eq!(running(&two.second).await, "t1", "its end is not known");
    assert_eq!(running(&two.first).await, Value::Null);
    assert_eq!(two.first.send(joining(None)).await.status(), StatusCode::NO_CONTENT);
}

/// The server has made the id, so the turn begins without a question to the relay.
#[tokio::test(start_paused = true)]
async fn turn_without_id_of_the_client_is_resumed_elsewhere() {
    let gate = Gate::new();
    let two = two(answer(&gate));
    let body = json!({"message": "How is it?", "conversation": "c1"});
    let (_, rest) = until(two.first.post("/api/chat", &body).await, "is ").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let turn = running(&two.first).await;
    assert_eq!(running(&two.second).await, turn);
    assert!(TurnId::new(turn.as_str().unwrap()).is_ok());
    drop(rest);
    gate.release();
    assert!(text(two.second.send(joining(None)).await).await.contains("sunny."));
}

/// Writes no end of a turn until the gate is released.
struct SlowEnd(Gate);

#[async_trait]
impl Around for SlowEnd {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        if let Asked::Append(batch) = asked
            && batch.entries.iter().any(|entry| matches!(entry.kind, EntryKind::TurnEnded(_)))
        {
            self.0.pass().await;
        }
        work.await
    }
}

#[tokio::test(start_paused = true)]
async fn law_o3_reader_elsewhere_learns_of_stored_end() {
    let (gate, store) = (Gate::new(), Arc::new(InMemoryStore::new()));
    let slow = StoreAround::with(Arc::clone(&store), SlowEnd(gate.clone()));
    let two = two_over(slow, [Answer::from_text("It is sunny.")], ServerLimits::default());
    let (_, _rest) = until(two.begin().await, "sunny.").await;
    let joined = two.second.send(joining(None)).await;
    let (read, mut rest) = until(joined, ": keep-alive\n\n: keep-alive\n\n").await;
    assert!(read.contains("sunny.") && !read.contains("[DONE]") && gate.is_reached(), "{read}");
    gate.release();
    let mut read = String::new();
    while !read.contains("[DONE]") {
        read.push_str(std::str::from_utf8(&rest.next().await.unwrap().unwrap()).unwrap());
    }
    let entries = store.read(&ConversationKey::new("c1").unwrap(), EntryId::BEGINNING, 9).await.unwrap();
    assert!(matches!(entries.last().unwrap().kind, EntryKind::TurnEnded(_)));
}
