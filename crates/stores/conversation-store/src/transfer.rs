//! Export and import of conversations as JSON Lines, for any store.

use std::collections::{HashSet, VecDeque};
use std::io;

use advisor_core::{ConversationKey, TurnId};
use futures::stream::{Stream, try_unfold};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::{Batch, BatchKey, ConversationStore, Entry, EntryId, NewEntry, ReadRange, StoreError, Version};

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
) -> impl Stream<Item = Result<String, StoreError>> + Send + 'static {
    let export = Export { store, key, entries: None, read: 0, lines: VecDeque::new() };
    try_unfold(export, |mut export| async move { Ok(export.next().await?.map(|line| (line, export))) })
}

/// The first line of an exported conversation. Every other line is an [`Entry`](crate::Entry).
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    tenant: String,
    conversation: String,
    /// The number of entries that follow, by which a truncated file is detected.
    entries: u64,
}

const FORMAT: &str = "advisor-conversation";

/// The version of the format that is written. A format that this version cannot read has a higher number.
const VERSION: u64 = 1;

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
    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let Some(entries) = self.entries else {
            let version = self.store.load(&self.key, ReadRange::LastEntries(0)).await?.version;
            self.entries = Some(version.0);
            return self.header(version.0).map(Some);
        };
        if self.lines.is_empty() && self.read < entries {
            let left = usize::try_from(entries - self.read).unwrap_or(usize::MAX);
            let page = self.store.read(&self.key, EntryId(self.read), PAGE.min(left)).await?;
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
    // The serialiser's error may quote the conversation, so it is dropped.
    let json = serde_json::to_string(line);
    let no_json =
        |_| StoreError::Unavailable { retryable: false, source: Some("an entry has no JSON form".into()) };
    Ok(json.map_err(no_json)? + "\n")
}

/// The result of an [`import()`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The conversation.
    pub key: ConversationKey,
    /// The number of its entries, including those from an earlier import of the same export.
    pub entries: u64,
}

/// The reason why a conversation was not imported completely. Once the cause is fixed, importing the same lines
/// again continues where this import ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The first line is not the header of an exported conversation.
    #[error("line 1 is not the header of an exported conversation; pass the output of an export")]
    NoHeader,
    /// A newer version of the program exported it.
    #[error(
        "the conversation was exported in version {found} of the format, and {known} is known; update the program"
    )]
    Newer {
        /// The format version of the export.
        found: u64,
        /// The newest format version that this program knows.
        known: u64,
    },
    /// A line is invalid.
    #[error("line {line} {what}; correct it, or export the conversation again, and import it again")]
    Line {
        /// The line number, from 1.
        line: u64,
        /// The problem.
        what: &'static str,
    },
    /// It was exported from another tenant than the default one, and no conversation is named to import it into.
    #[error(
        "the conversation was exported from the tenant `{tenant}`; name the tenant and the conversation to import it into"
    )]
    OtherTenant {
        /// The tenant of the export.
        tenant: String,
    },
    /// The export has fewer entries than its header says.
    #[error("the export was cut: it has {found} of {entries} entries; import the whole of it")]
    Cut {
        /// The number of entries that the header gives.
        entries: u64,
        /// The number of entries found.
        found: u64,
    },
    /// The conversation has other content.
    #[error(
        "the conversation `{key}` holds something else already; import under another id, or delete it first"
    )]
    OtherContent {
        /// The conversation.
        key: ConversationKey,
    },
    /// Reading the lines failed.
    #[error("the lines cannot be read from line {line} on")]
    Read {
        /// The number of the line that was being read.
        line: u64,
        /// The cause.
        source: io::Error,
    },
    /// The store failed.
    #[error("the store did not accept the whole conversation; import it again")]
    Store(#[from] StoreError),
}

/// Imports the lines that [`export`](crate::export()) wrote, into `renamed`, or into the conversation of the header in the
/// default tenant. The lines of someone else cannot choose another tenant: name it with `renamed`.
///
/// It appends one turn at a time. The first batch of a turn has the key of its input, by which the turn is
/// recognised when it is submitted again. Further batches have keys derived from their position. So importing the
/// same lines again changes nothing, and resumes an interrupted import. A conversation with other content is
/// refused.
///
/// # Cancellation
/// Entries appended before it is dropped stay. Importing again continues from there.
///
/// # Errors
/// Each [`ImportError`] names the remedy. Entries before an invalid line may have been imported.
///
/// # Example
/// See [`export`](crate::export()).
pub async fn import(
    store: &dyn ConversationStore,
    lines: impl AsyncBufRead + Unpin,
    renamed: Option<ConversationKey>,
) -> Result<Imported, ImportError> {
    let mut lines = Lines { source: lines, line: 0, buffer: Vec::new() };
    let header = header(lines.next().await?.ok_or(ImportError::NoHeader)?)?;
    let key = match renamed {
        Some(key) => key,
        None => {
            let key = ConversationKey::new(&header.conversation)
                .map_err(|_| ImportError::Line { line: 1, what: "names a conversation that cannot be" })?;
            if key.tenant() != header.tenant {
                return Err(ImportError::OtherTenant { tenant: header.tenant });
            }
            key
        }
    };
    let mut import =
        Import { store, key, version: Version::EMPTY, pending: Pending::default(), turns: HashSet::new() };
    for seq in 1..=header.entries {
        let Some(bytes) = lines.next().await? else {
            // The end of the last batch is unknown, so the batch is left for an import of the whole file.
            return Err(ImportError::Cut { entries: header.entries, found: seq - 1 });
        };
        let line = entry(bytes, seq).map_err(|what| lines.refuse(what))?;
        import.take(line).await?;
    }
    if lines.next().await?.is_some() {
        return Err(lines.refuse("follows the last entry"));
    }
    import.write().await?;
    Ok(Imported { key: import.key, entries: header.entries })
}

fn header(line: &[u8]) -> Result<Header, ImportError> {
    let header: Header = read(line).ok_or(ImportError::NoHeader)?;
    match header.version {
        _ if header.format != FORMAT => Err(ImportError::NoHeader),
        found if found > VERSION => Err(ImportError::Newer { found, known: VERSION }),
        _ => Ok(header),
    }
}

fn entry(line: &[u8], seq: u64) -> Result<Entry, &'static str> {
    let entry: Entry = read(line).ok_or("is not an entry")?;
    if entry.seq != seq {
        return Err("is not the next entry: its number is another one");
    }
    if entry.parent.is_some_and(|parent| parent.0 >= seq) {
        return Err("follows an entry that does not come before it");
    }
    Ok(entry)
}

/// Parses a line. The parser's error may quote the conversation, so it is dropped. The parser does not check the
/// bytes of fields that it skips, so the line is checked to be UTF-8 first.
fn read<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_str(str::from_utf8(line).ok()?).ok()
}

/// Lines of bounded length; empty ones are skipped.
struct Lines<R> {
    source: R,
    line: u64,
    buffer: Vec<u8>,
}

/// The maximum length of a line in bytes: an entry of the largest batch that stores accept, with every other
/// character escaped.
const LONGEST_LINE: u64 = 128 << 20;

impl<R: AsyncBufRead + Unpin> Lines<R> {
    async fn next(&mut self) -> Result<Option<&[u8]>, ImportError> {
        loop {
            self.line = self.line.saturating_add(1);
            self.buffer.clear();
            let mut bounded = (&mut self.source).take(LONGEST_LINE);
            let read = bounded.read_until(b'\n', &mut self.buffer).await;
            let read = read.map_err(|source| ImportError::Read { line: self.line, source })?;
            if read == 0 {
                return Ok(None);
            }
            let is_whole = self.buffer.ends_with(b"\n") || bounded.limit() > 0;
            if !is_whole {
                return Err(self.refuse("is longer than any entry"));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(&self.buffer));
            }
        }
    }
}

impl<R> Lines<R> {
    fn refuse(&self, what: &'static str) -> ImportError {
        ImportError::Line { line: self.line, what }
    }
}

struct Import<'a> {
    store: &'a dyn ConversationStore,
    key: ConversationKey,
    version: Version,
    pending: Pending,
    /// The turns with imported entries.
    turns: HashSet<TurnId>,
}

/// The entries of the next batch.
#[derive(Default)]
struct Pending {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Pending {
    /// Returns whether a batch ends before this entry. This depends only on the imported lines, so that every
    /// import of the same lines makes the same batches.
    fn ends_before(&self, next: &Entry) -> bool {
        let Some(last) = self.entries.last() else { return false };
        let is_full = self.entries.len() >= 512 || self.bytes >= 1 << 20;
        next.parent.is_some() || last.turn != next.turn || is_full
    }
}

impl Import<'_> {
    async fn take(&mut self, entry: Entry) -> Result<(), ImportError> {
        if self.pending.ends_before(&entry) {
            self.write().await?;
        }
        let bytes = serde_json::to_vec(&entry.kind).map_or(0, |json| json.len());
        self.pending.bytes = self.pending.bytes.saturating_add(bytes);
        self.pending.entries.push(entry);
        Ok(())
    }

    async fn write(&mut self) -> Result<(), ImportError> {
        let entries = std::mem::take(&mut self.pending).entries;
        let Some(first) = entries.first() else { return Ok(()) };
        let key = if self.turns.insert(first.turn.clone()) {
            BatchKey::for_input(first.turn.clone())
        } else {
            BatchKey::new(first.turn.clone(), 0, format!("import-{}", first.seq))
        };
        let parent = first.parent;
        let new = |entry: Entry| NewEntry::new(entry.turn, entry.kind).with_round(entry.round);
        let entries = entries.into_iter().map(new).collect();
        let batch = Batch { parent, ..Batch::new(key, entries) };
        let led_to = self.version.after(batch.entries.len());
        let mut outcome = self.store.append(&self.key, self.version, batch.clone()).await;
        if let Err(StoreError::OutcomeUnknown { .. }) = outcome {
            // The batch's key makes the retry safe.
            outcome = self.store.append(&self.key, self.version, batch).await;
        }
        match outcome {
            Ok(version) if version == led_to => {
                self.version = version;
                Ok(())
            }
            Ok(_) | Err(StoreError::Conflict { .. } | StoreError::KeyReused) => {
                Err(ImportError::OtherContent { key: self.key.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
