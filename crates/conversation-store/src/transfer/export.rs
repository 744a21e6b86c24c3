use std::collections::VecDeque;

use advisor_core::ConversationKey;
use futures::stream::{Stream, try_unfold};
use serde::{Deserialize, Serialize};

use crate::{ConversationStore, EntryId, ReadRange, StoreError};

/// A conversation as JSON Lines, each with its line break: a header, then one entry a line, in the order in which
/// they were written, those of all branches. [`import`](crate::import()) reads it.
///
/// It works with every store and reads ahead no further than a few dozen entries. Entries of unknown kinds and
/// those that cannot be read are exported as they stand. It exports what there is when it begins; what is
/// written meanwhile is left out. The keys of batches are not exported: an old turn that is submitted again
/// under its id after an import is known by its entries only.
///
/// # Cancellation
/// It reads only when it is polled, and can be dropped at any time.
///
/// # Errors
/// Those of the store, after which the stream ends; [`StoreError::Gone`] if the conversation is deleted
/// meanwhile.
///
/// # Example
/// ```
/// use advisor_core::ConversationKey;
/// use conversation_store::{InMemoryStore, export, import};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use advisor_core::{Message, TurnId};
/// # use conversation_store::{Batch, BatchKey, ConversationStore, EntryKind, NewEntry, Version};
/// let (store, key) = (InMemoryStore::new(), ConversationKey::new("c1")?);
/// # let said = NewEntry::new(TurnId::new("t")?, EntryKind::Message(Message::user("Hello")));
/// # store.append(&key, Version::EMPTY, Batch::new(BatchKey::new(TurnId::new("t")?, 0, "input"), vec![said])).await?;
/// let lines: String = export(store, key).try_collect().await?;
///
/// let (other, renamed) = (InMemoryStore::new(), ConversationKey::new("c2")?);
/// let imported = import(&other, lines.as_bytes(), Some(renamed)).await?;
/// assert_eq!((imported.key.conversation(), imported.entries), ("c2", 1));
/// # Ok(()) }
/// ```
pub fn export<S: ConversationStore>(
    store: S,
    key: ConversationKey,
) -> impl Stream<Item = Result<String, StoreError>> + Send + 'static {
    let export = Export { store, key, entries: None, read: 0, lines: VecDeque::new() };
    try_unfold(export, |mut export| async move { Ok(export.next().await?.map(|line| (line, export))) })
}

/// The first line of an exported conversation. Every other one is an [`Entry`](crate::Entry).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u64,
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    /// How many entries follow, so that a file that was cut is told from a whole one.
    pub(crate) entries: u64,
}

pub(crate) const FORMAT: &str = "advisor-conversation";

/// The newest version of the format, which is written. A version that this one cannot read has a higher number.
pub(crate) const VERSION: u64 = 1;

/// How many entries are read at once.
const PAGE: usize = 64;

struct Export<S> {
    store: S,
    key: ConversationKey,
    /// How many there are; absent before they were counted.
    entries: Option<u64>,
    read: u64,
    lines: VecDeque<String>,
}

impl<S: ConversationStore> Export<S> {
    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let Some(entries) = self.entries else {
            let version = self.store.load(&self.key, ReadRange::LastEntries(0)).await?.version;
            self.entries = Some(version.as_u64());
            return self.header(version.as_u64()).map(Some);
        };
        if self.lines.is_empty() && self.read < entries {
            let left = usize::try_from(entries - self.read).unwrap_or(usize::MAX);
            let page = self.store.read(&self.key, EntryId::new(self.read), PAGE.min(left)).await?;
            self.read = page.last().ok_or(StoreError::Gone)?.seq;
            self.lines = page.iter().map(text).collect::<Result<_, _>>()?;
        }
        Ok(self.lines.pop_front())
    }

    fn header(&self, entries: u64) -> Result<String, StoreError> {
        text(&Header {
            format: FORMAT.into(),
            version: VERSION,
            tenant: self.key.tenant().into(),
            conversation: self.key.conversation().into(),
            entries,
        })
    }
}

fn text(line: &impl Serialize) -> Result<String, StoreError> {
    // What the encoder says may quote the conversation, so it is not passed on.
    let json = serde_json::to_string(line);
    let no_json =
        |_| StoreError::Unavailable { retryable: false, source: Some("an entry has no JSON form".into()) };
    Ok(json.map_err(no_json)? + "\n")
}
