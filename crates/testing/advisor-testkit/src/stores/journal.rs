//! `JournalStore`: a store that records each append in a `Journal`.

use std::sync::Arc;

use advisor_core::{ConversationKey, Message};
use async_trait::async_trait;
use conversation_store::{ConversationStore, ReadRange, StoreError, Version};
use tokio::task::yield_now;

use super::{Around, Asked, StoreAround, Work};
use crate::Journal;

/// A store that yields to other tasks, and records each append in a [`Journal`] after its effect.
///
/// Each append is one event with a word per entry, such as `stored user`, `stored started(c1)` or `stored assistant()
/// end`. An append of two results is `stored result(c1) result(c2)`. The store yields to other tasks
/// before a load, and before and after an append, so that an accidental order becomes visible.
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
/// let model = ScriptedModel::new([Answer::from_text("Hi")]).with_journal(&journal);
/// let client = ChatClient::builder(model).advisor(ChatMemoryAdvisor::new(store)).build()?;
/// client.prompt().user("Hello").conversation("c").call().await?;
/// journal.assert_order(&["stored user", "model.ask r1", "model.end r1", "stored assistant() end"]);
/// # Ok(()) }
/// ```
pub type JournalStore<S> = StoreAround<S, Journal>;

impl<S: ConversationStore> JournalStore<S> {
    /// Wraps a store.
    pub fn new(inner: S, journal: &Journal) -> Self {
        Self::with(Arc::new(inner), journal.clone())
    }

    /// Returns all messages of the log as they were stored, without repair.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn log(&self, key: &ConversationKey) -> Result<Vec<Message>, StoreError> {
        let snapshot = self.inner.load(key, ReadRange::All).await?;
        Ok(snapshot.entries.iter().filter_map(|entry| entry.kind.as_message()).cloned().collect())
    }
}

#[async_trait]
impl Around for Journal {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        if matches!(asked, Asked::Load | Asked::Append(_)) {
            yield_now().await;
        }
        let done = work.await?;
        if let Asked::Append(batch) = asked {
            yield_now().await;
            let labels: Vec<_> = batch.entries.iter().map(|entry| entry.kind.label()).collect();
            self.record(format!("stored {}", labels.join(" ")));
        }
        Ok(done)
    }
}
