//! Shared parts of the tests: a folder with a file in it, and small batches.

use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use advisor_conformance::store::said;
use advisor_core::{ConversationKey, Message, async_trait};
use advisor_testkit::{Around, Asked, StoreAround, Work};
use chat_memory_sqlite::SqliteStore;
use conversation_store::{ConversationStore, Entry, Result, Version};
use rusqlite::Connection;
use tempfile::TempDir;

/// A file in a separate folder, which is removed with it.
pub(crate) struct File(TempDir);

impl File {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("conversations.sqlite")
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).await.unwrap()
    }

    /// Changes the file behind the store's back.
    pub(crate) fn tamper(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

/// A store on a file, which is kept as long as the store.
pub(crate) async fn on_file() -> impl ConversationStore {
    let file = File::new();
    StoreAround::with(Arc::new(file.open().await), file)
}

#[async_trait]
impl Around for File {
    async fn around(&self, _: Asked<'_>, work: Work<'_>) -> Result<Option<Version>> {
        work.await
    }
}

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

pub(crate) fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text).collect()
}
