//! Requests about a conversation that is long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{ChatClient, ConversationKey, async_trait};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::ChatMemoryAdvisor;
use chat_memory_advisor::store::{
    Batch, ConversationStore, Entry, EntryId, InMemoryStore, Page, ReadRange, Result, Snapshot, Version,
};
use serde_json::json;

use crate::setting::{Setting, text};

/// A store that notes the largest number of entries that a read has returned.
#[derive(Default)]
struct Noted {
    store: InMemoryStore,
    largest: Arc<AtomicUsize>,
}

#[async_trait]
impl ConversationStore for Noted {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.store.load(key, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.store.load_branch(key, tip, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let read = self.store.read(key, after, limit).await?;
        self.largest.fetch_max(read.len(), Ordering::Relaxed);
        Ok(read)
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        self.store.append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.store.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.store.list(page).await
    }
}

#[tokio::test]
async fn law_r1_replaced_turn_is_found_in_pages() {
    let store = Noted::default();
    let largest = Arc::clone(&store.largest);
    let memory = ChatMemoryAdvisor::new(store);
    let model = ScriptedModel::from_fn(|_| Answer::from_text("Hi."));
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
    let setting = Setting { server: ChatServer::new(client, memory), model };
    for number in 0..100 {
        let body = json!({"message": "Hello", "conversation": "c1", "turn": format!("t{number}")});
        text(setting.post("/api/chat", &body).await).await;
    }
    for (turn, status) in [("t0", StatusCode::OK), ("t99", StatusCode::OK), ("t100", StatusCode::NOT_FOUND)] {
        largest.store(0, Ordering::Relaxed);
        let body = json!({"message": "Again", "conversation": "c1", "replaces": turn});
        let response = setting.post("/api/chat", &body).await;
        assert_eq!(response.status(), status, "{turn}");
        text(response).await;
        assert!((1..=256).contains(&largest.load(Ordering::Relaxed)), "{turn}: {largest:?}");
    }
}
