use std::fmt;

use advisor_core::{ConversationKey, Message, MessageContent};
use async_trait::async_trait;
use chat_memory_advisor::{
    Batch, ConversationStore, Entry, EntryId, EntryKind, Leases, Page, Snapshot, StoreError, Version, View,
};
use tokio::task::yield_now;

use crate::Journal;

/// A store that takes its time, and tells a [`Journal`] what it has stored once it is stored.
///
/// Each append is one event with a word per entry, such as `stored user` or
/// `stored assistant(c1,c2)` or `stored started(c1)` or `stored result(c1) result(c2)` or `stored assistant() end`. Before and after
/// the append it lets other tasks run, so that an order that is only accidental shows.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, Journal, JournalStore, ScriptedModel};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let journal = Journal::new();
/// let store = JournalStore::new(InMemoryStore::new(), &journal);
/// let model = ScriptedModel::new([Answer::of_text("Hi")]).with_journal(&journal);
/// let client = ChatClient::builder(model).advisor(ChatMemoryAdvisor::new(store)).build()?;
/// client.prompt().user("Hello").conversation("c").call().await?;
/// journal.assert_order(&["stored user", "model.ask r1", "model.end r1", "stored assistant() end"]);
/// # Ok(()) }
/// ```
pub struct JournalStore<S> {
    inner: S,
    journal: Journal,
}

impl<S: ConversationStore> JournalStore<S> {
    /// Wraps a store.
    pub fn new(inner: S, journal: &Journal) -> Self {
        Self { inner, journal: journal.clone() }
    }

    /// All messages of the log as they were stored, repaired or not.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn log(&self, key: &ConversationKey) -> Result<Vec<Message>, StoreError> {
        let snapshot = self.inner.load(key, View::All).await?;
        Ok(snapshot.entries.iter().filter_map(|entry| entry.kind.as_message()).cloned().collect())
    }
}

fn words(batch: &Batch) -> String {
    let words: Vec<_> = batch.entries.iter().map(|entry| word(&entry.kind)).collect();
    words.join(" ")
}

fn word(kind: &EntryKind) -> String {
    let message = match kind {
        EntryKind::Message(message) => message,
        EntryKind::CallStarted(start) => return format!("started({})", start.call_id),
        EntryKind::TurnEnded(_) => return "end".into(),
        EntryKind::Summary(_) => return "summary".into(),
        EntryKind::Corrupt(_) => return "corrupt".into(),
        _ => return "unknown".into(),
    };
    match message.content() {
        MessageContent::System(_) => "system".into(),
        MessageContent::User(_) => "user".into(),
        MessageContent::Assistant(_) => {
            let calls: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
            format!("assistant({})", calls.join(","))
        }
        MessageContent::Tool(result) => format!("result({})", result.call_id),
        _ => "unknown".into(),
    }
}

#[async_trait]
impl<S: ConversationStore> ConversationStore for JournalStore<S> {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        yield_now().await;
        self.inner.load(key, view).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        self.inner.load_branch(key, tip, view).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.inner.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.inner.branches(key).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        let words = words(&batch);
        yield_now().await;
        let version = self.inner.append(key, expected, batch).await?;
        yield_now().await;
        self.journal.record(format!("stored {words}"));
        Ok(version)
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.inner.leases()
    }
}

impl<S> fmt::Debug for JournalStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalStore").field("journal", &self.journal).finish_non_exhaustive()
    }
}
