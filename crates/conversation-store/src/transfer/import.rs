//! `import`, `Imported` and `ImportError`: reads JSON Lines into a store, repeatable after an interruption.

use std::collections::HashSet;
use std::io;

use advisor_core::{ConversationKey, TurnId};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::transfer::export::{FORMAT, Header, VERSION};
use crate::{
    Batch, BatchKey, BatchStep, ConversationStore, Entry, NewEntry, StoreError, Version, append_once,
};

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
    if entry.parent.is_some_and(|parent| parent.as_u64() >= seq) {
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
