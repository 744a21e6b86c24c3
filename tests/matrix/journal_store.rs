use advisor_chain::{
    Batch, ConversationKey, ConversationStore, EntryKind, InMemoryStore, Message, Page, Role, Snapshot,
    StoreError, Version, View, async_trait,
};
use advisor_testkit::Journal;
use tokio::task::yield_now;

/// A store that takes its time and tells the journal what it has stored, once it is stored.
pub struct JournalStore {
    inner: InMemoryStore,
    journal: Journal,
}

impl JournalStore {
    pub fn new(inner: InMemoryStore, journal: &Journal) -> Self {
        Self { inner, journal: journal.clone() }
    }

    /// The messages of the log as it is, whatever they are.
    pub async fn log(&self, key: &ConversationKey) -> Vec<Message> {
        let snapshot = self.inner.load(key, View::All).await.unwrap();
        snapshot.entries.iter().filter_map(|entry| entry.kind.as_message()).cloned().collect()
    }
}

/// A batch in one word per entry: `user`, `assistant(r1c0,r1c1)`, `result(r1c0)`, `end`.
fn words(batch: &Batch) -> String {
    let word = |kind: &EntryKind| match kind {
        EntryKind::Message(message) => match message.role() {
            Role::User => String::from("user"),
            Role::Assistant => {
                let calls: Vec<_> = message.tool_calls().map(|call| call.id.to_string()).collect();
                format!("assistant({})", calls.join(","))
            }
            Role::Tool => format!("result({})", message.tool_result().map_or("", |result| &result.call_id)),
            Role::System => String::from("system"),
        },
        EntryKind::TurnEnded(_) => String::from("end"),
        _ => String::from("other"),
    };
    let words: Vec<_> = batch.entries.iter().map(|entry| word(&entry.kind)).collect();
    words.join(" ")
}

#[async_trait]
impl ConversationStore for JournalStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        yield_now().await;
        self.inner.load(key, view).await
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
}
