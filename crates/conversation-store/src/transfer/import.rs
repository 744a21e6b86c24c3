use std::collections::HashSet;
use std::io;

use advisor_core::{ConversationKey, TurnId};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::transfer::export::{FORMAT, Header, VERSION};
use crate::{
    Batch, BatchKey, BatchStep, ConversationStore, Entry, NewEntry, StoreError, Version, append_once,
};

/// What an [`import()`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The conversation.
    pub key: ConversationKey,
    /// How many entries it was given, those included that it had from an earlier import of the same.
    pub entries: u64,
}

/// Why a conversation was not imported, or not all of it. Importing the same again, once that is mended, goes on
/// where it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The first line is not the header of an exported conversation.
    #[error("line 1 is not the header of an exported conversation; give what an export wrote")]
    NoHeader,
    /// A newer version exported it.
    #[error(
        "the conversation was exported in version {found} of the format, and {known} is known; update the program"
    )]
    Newer {
        /// The version of the export.
        found: u64,
        /// The newest one that this program knows.
        known: u64,
    },
    /// A line cannot be used.
    #[error("line {line} {what}; mend it, or export the conversation again, and import it again")]
    Line {
        /// Its number, from 1 on.
        line: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There are fewer entries than the header says.
    #[error("the export was cut: it has {found} of {entries} entries; import the whole of it")]
    Cut {
        /// How many there should be.
        entries: u64,
        /// How many there are.
        found: u64,
    },
    /// The conversation holds something else.
    #[error(
        "the conversation `{key}` holds something else already; import under another id, or delete it first"
    )]
    OtherContent {
        /// The conversation.
        key: ConversationKey,
    },
    /// The lines cannot be read.
    #[error("the lines cannot be read from line {line} on")]
    Read {
        /// The line that was to be read.
        line: u64,
        /// What went wrong.
        source: io::Error,
    },
    /// The store did not take it.
    #[error("the store did not take all of the conversation; import it again")]
    Store(#[from] StoreError),
}

/// Reads what [`export`](crate::export()) wrote into a conversation: that of the header, or `renamed`.
///
/// It appends a turn at a time, under the key of its input, by which the turn is known when it is submitted again, or,
/// for what else there is of it, under keys that follow from the place. So importing the same again changes nothing,
/// and one that was broken off is gone on with. A conversation that holds anything else is refused.
///
/// # Cancellation
/// What is appended when it is dropped stays. Importing again goes on from there.
///
/// # Errors
/// [`ImportError`] says what to do. Entries before a line that cannot be used may have been imported.
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
        None => ConversationKey::in_tenant(&header.tenant, &header.conversation)
            .map_err(|_| ImportError::Line { line: 1, what: "names a conversation that cannot be" })?,
    };
    let mut import =
        Import { store, key, version: Version::EMPTY, pending: Pending::default(), turns: HashSet::new() };
    for seq in 1..=header.entries {
        let Some(bytes) = lines.next().await? else {
            // Where the last batch ends is not known, so it is left for an import of the whole.
            return Err(ImportError::Cut { entries: header.entries, found: seq - 1 });
        };
        let line = entry(bytes, seq).map_err(|what| lines.refuse(what))?;
        import.take(line).await?;
    }
    if lines.next().await?.is_some() {
        return Err(lines.refuse("stands behind the last entry"));
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
    if entry.parent.is_some_and(|parent| parent.as_u64() >= seq) {
        return Err("follows an entry that does not come before it");
    }
    Ok(entry)
}

/// What the parser says may quote the conversation, so it is not passed on. It takes no notice of bytes in fields that it
/// skips, and those must be text, too.
fn read<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_str(str::from_utf8(line).ok()?).ok()
}

/// Lines of bounded length, empty ones left out.
struct Lines<R> {
    source: R,
    line: u64,
    buffer: Vec<u8>,
}

/// The most bytes of a line: an entry of the largest batch that stores take, if every other character of it is
/// escaped.
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
    /// Those of which something is imported.
    turns: HashSet<TurnId>,
}

/// What is appended next.
#[derive(Default)]
struct Pending {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Pending {
    /// Whether a batch ends before this entry. It follows from what is imported alone, so that every import of the
    /// same makes the same batches.
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
            BatchKey::new(first.turn.clone(), 0, BatchStep::Imported(first.seq))
        };
        let batch = Batch { parent: first.parent, ..Batch::new(key, Vec::new()) };
        let new = |entry: Entry| {
            let round = entry.round();
            NewEntry::new(entry.turn, entry.kind).with_round(round)
        };
        let entries = entries.into_iter().map(new).collect();
        let batch = Batch { entries, ..batch };
        let led_to = self.version.after(batch.entries.len());
        match append_once(self.store, &self.key, self.version, batch).await {
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
