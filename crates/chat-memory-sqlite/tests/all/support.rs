//! Shared parts of the tests: a folder with a file in it, and small batches.

use std::path::PathBuf;

use advisor_core::{ConversationKey, Message, TurnId, async_trait};
use chat_memory_sqlite::SqliteStore;
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, EntryKind, NewEntry, Page, ReadRange, Result,
    Snapshot, Version,
};
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

/// A store with the folder that it is in.
pub(crate) struct OnFile {
    store: SqliteStore,
    _file: File,
}

impl OnFile {
    pub(crate) async fn new() -> Self {
        let file = File::new();
        Self { store: file.open().await, _file: file }
    }
}

#[async_trait]
impl ConversationStore for OnFile {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.store.load(key, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.store.load_branch(key, tip, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        self.store.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        self.store.branches(key).await
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

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// A batch of one turn.
pub(crate) fn said(turn: &str, round: u32, texts: &[&str]) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let entry = |text: &&str| NewEntry::new(turn.clone(), EntryKind::Message(Message::user(*text)));
    Batch::new(BatchKey::new(turn.clone(), round, "said"), texts.iter().map(entry).collect())
}

pub(crate) fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text).collect()
}
