//! `export`: a conversation as a stream of JSON Lines; the header format.

use std::collections::VecDeque;

use advisor_core::ConversationKey;
use futures::stream::{Stream, try_unfold};
use serde::{Deserialize, Serialize};

use crate::{ConversationStore, EntryId, ReadRange, Result, StoreError};

/// Exports a conversation as JSON Lines, each with its line break. A header comes first, then the entries of all
/// branches, in the order in which they were written. [`import`](crate::import()) reads it.
///
/// It works with every store and reads at most 64 entries ahead. Entries of unknown kinds and damaged entries are
/// exported unchanged. The first poll fixes the end of the export: entries written later are left out. Batch keys
/// are not exported. After an import, a turn that is submitted again under its id is recognised only by its
/// entries.
///
/// # Cancellation
/// It reads only when polled, and can be dropped at any time.
///
/// # Errors
/// Those of the store, after which the stream ends. [`StoreError::Gone`] if the conversation is deleted during the
/// export.
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
) -> impl Stream<Item = Result<String>> + Send + 'static {
    let export = Export { store, key, entries: None, read: 0, lines: VecDeque::new() };
    try_unfold(export, |mut export| async move { Ok(export.next().await?.map(|line| (line, export))) })
}

/// The first line of an exported conversation. Every other line is an [`Entry`](crate::Entry).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u64,
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    /// The number of entries that follow, by which a truncated file is detected.
    pub(crate) entries: u64,
}

pub(crate) const FORMAT: &str = "advisor-conversation";

/// The version of the format that is written. A format that this version cannot read has a higher number.
pub(crate) const VERSION: u64 = 1;

/// The number of entries per read.
const PAGE: usize = 64;

struct Export<S> {
    store: S,
    key: ConversationKey,
    /// The number of entries to export; `None` before they are counted.
    entries: Option<u64>,
    read: u64,
    lines: VecDeque<String>,
}

impl<S: ConversationStore> Export<S> {
    async fn next(&mut self) -> Result<Option<String>> {
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

    fn header(&self, entries: u64) -> Result<String> {
        text(&Header {
            format: FORMAT.into(),
            version: VERSION,
            tenant: self.key.tenant().into(),
            conversation: self.key.conversation().into(),
            entries,
        })
    }
}

fn text(line: &impl Serialize) -> Result<String> {
    // The serialiser's error may quote the conversation, so it is dropped.
    let json = serde_json::to_string(line);
    let no_json =
        |_| StoreError::Unavailable { retryable: false, source: Some("an entry has no JSON form".into()) };
    Ok(json.map_err(no_json)? + "\n")
}
