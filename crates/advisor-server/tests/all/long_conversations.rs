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

use crate::setting::{Setting, json_of, text};

/// A store that notes the largest number of entries that a read, or a load, has returned.
#[derive(Default)]
struct Noted {
    store: InMemoryStore,
    largest: Arc<AtomicUsize>,
    largest_load: Arc<AtomicUsize>,
}

impl Noted {
    fn loaded(&self, snapshot: Snapshot) -> Snapshot {
        self.largest_load.fetch_max(snapshot.entries.len(), Ordering::Relaxed);
        snapshot
    }
}

#[async_trait]
impl ConversationStore for Noted {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        Ok(self.loaded(self.store.load(key, range).await?))
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        Ok(self.loaded(self.store.load_branch(key, tip, range).await?))
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

/// A server over this store, with a conversation of 100 turns, each of three entries.
async fn with_conversation(store: Noted) -> Setting {
    let memory = ChatMemoryAdvisor::new(store);
    let model = ScriptedModel::from_fn(|_| Answer::from_text("Hi."));
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
    let setting = Setting { server: ChatServer::new(client, memory), model };
    for number in 0..100 {
        let body = json!({"message": "Hello", "conversation": "c1", "turn": format!("t{number}")});
        text(setting.post("/api/chat", &body).await).await;
    }
    setting
}

#[tokio::test]
async fn law_r1_replaced_turn_is_found_in_pages() {
    let store = Noted::default();
    let largest = Arc::clone(&store.largest);
    let setting = with_conversation(store).await;
    let cases = [
        ("t99", StatusCode::OK, 0..=0),
        ("t0", StatusCode::OK, 1..=256),
        ("t100", StatusCode::NOT_FOUND, 1..=256),
    ];
    for (turn, status, pages) in cases {
        largest.store(0, Ordering::Relaxed);
        let body = json!({"message": "Again", "conversation": "c1", "replaces": turn});
        let response = setting.post("/api/chat", &body).await;
        assert_eq!(response.status(), status, "{turn}");
        text(response).await;
        assert!(pages.contains(&largest.load(Ordering::Relaxed)), "{turn}: {largest:?}");
    }
}

#[tokio::test]
async fn page_of_messages_is_read_without_the_rest() {
    let store = Noted::default();
    let (largest, largest_load) = (Arc::clone(&store.largest), Arc::clone(&store.largest_load));
    let setting = with_conversation(store).await;
    let mut query = "limit=5".to_owned();
    for _ in 0..3 {
        largest.store(0, Ordering::Relaxed);
        largest_load.store(0, Ordering::Relaxed);
        let read = json_of(setting.get(&format!("/api/conversations/c1?{query}")).await).await;
        assert_eq!(read["messages"].as_array().unwrap().len(), 10);
        assert_eq!((largest.load(Ordering::Relaxed), largest_load.load(Ordering::Relaxed)), (0, 15));
        query = format!("limit=5&before={}", read["before"].as_str().unwrap());
    }
}
