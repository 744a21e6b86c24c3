//! The replies of the scripts.

use std::collections::HashMap;
use std::vec::IntoIter;

use conversation_store::{
    Admission, AppliedBatch, Batch, BranchIndex, Entry, EntryId, FencingToken, LogReader, LogState, Result,
    Segment, Snapshot, StoreError, Version, WrittenEntry, admit,
};
use redis::{FromRedisValue, Value, from_redis_value};

use crate::failure::lasting;

/// A reply: a word that names its kind, and its values.
pub(crate) struct Reply {
    pub(crate) word: String,
    rest: IntoIter<Value>,
}

/// An entry as stored. Its texts may be invalid UTF-8.
struct Standing {
    seq: u64,
    turn: Vec<u8>,
    body: Vec<u8>,
}

/// An element of a stream: its id, and its fields by their names.
type Element = (String, HashMap<Vec<u8>, Vec<u8>>);

impl Reply {
    /// Parses a reply. Failures that every script may report become errors.
    pub(crate) fn from_value(value: Value) -> Result<Self> {
        let mut reply = Self { word: String::new(), rest: read::<Vec<Value>>(value)?.into_iter() };
        reply.word = reply.next()?;
        match reply.word.as_str() {
            "unknown format" => {
                Err(lasting("the format of the conversation is not known to this version of the crate"))
            }
            "damaged" => Err(StoreError::Corrupt {
                seq: None,
                source: Some(
                    "keys of the conversation are missing or were changed, as an eviction does; set \
                     `maxmemory-policy` to `noeviction`"
                        .into(),
                ),
            }),
            _ => Ok(reply),
        }
    }

    /// Returns the next value.
    pub(crate) fn next<T: FromRedisValue>(&mut self) -> Result<T> {
        self.rest.next().ok_or_else(unexpected).and_then(read)
    }

    /// Returns the result of an append; `None` if the conversation needs a new mark.
    pub(crate) fn outcome(
        mut self,
        expected: Version,
        batch: &Batch,
        entries: &[WrittenEntry<'_>],
    ) -> Result<Option<Version>> {
        match self.word.as_str() {
            "written" => return Ok(Some(Version(self.next()?))),
            "unmarked" => return Ok(None),
            "refused" => {}
            _ => return Err(unexpected()),
        }
        let version = Version(self.next()?);
        let (token, last_turn): (String, Vec<u8>) = (self.next()?, self.next()?);
        let token = (!token.is_empty()).then(|| token.parse().map_err(|_| unexpected())).transpose()?;
        let applied = applied(self.next()?, entries)?;
        let state = LogState { version, token: token.map(FencingToken), last_turn: &last_turn, applied };
        match admit(&state, expected, batch)? {
            Admission::Done(version) => Ok(Some(version)),
            Admission::Write => Err(lasting("the server did not write a batch that it had to write")),
        }
    }

    /// Builds the snapshot of the branch that ends with `tip`, or of the last one.
    pub(crate) fn snapshot(mut self, tip: Option<EntryId>) -> Result<Snapshot> {
        match (self.word.as_str(), tip) {
            ("none", Some(id)) if id > EntryId::BEGINNING => return Err(StoreError::NoSuchEntry { id }),
            ("none", _) => return Ok(Snapshot::default()),
            ("found", _) => {}
            _ => return Err(unexpected()),
        }
        let version = Version(self.next()?);
        let (open, turn_from, range_from): (String, _, _) = (self.next()?, self.next()?, self.next()?);
        let segments = self.next::<Vec<_>>()?.into_iter().map(segment).collect::<Result<_>>()?;
        let entries = entries(self.next()?, segments)?;
        Ok(Snapshot::from_read(version, entries, range_from, (open == "1").then_some(turn_from)))
    }

    /// Builds the entries after `after`.
    pub(crate) fn range(mut self, after: u64) -> Result<Vec<Entry>> {
        let Some(last) = self.found()? else { return Ok(Vec::new()) };
        let segments = self.forks()?.range(after, last);
        entries(self.next()?, segments)
    }

    /// Returns the last entries of all branches.
    pub(crate) fn tips(mut self) -> Result<Vec<EntryId>> {
        let Some(version) = self.found()? else { return Ok(Vec::new()) };
        Ok(self.forks()?.tips(version))
    }

    /// Returns the number in the reply if the conversation exists.
    fn found(&mut self) -> Result<Option<u64>> {
        match self.word.as_str() {
            "none" => Ok(None),
            "found" => self.next().map(Some),
            _ => Err(unexpected()),
        }
    }

    fn forks(&mut self) -> Result<BranchIndex> {
        let forks: Vec<(u64, u64)> = self.next()?;
        Ok(forks.into_iter().map(|(first, parent)| (first, EntryId(parent))).collect())
    }
}

impl Standing {
    fn new((id, mut fields): Element) -> Result<Self> {
        let seq = id.strip_suffix("-0").and_then(|seq| seq.parse().ok()).ok_or_else(unexpected)?;
        let mut field = |name: &[u8]| fields.remove(name).unwrap_or_default();
        Ok(Self { seq, turn: field(b"turn"), body: field(b"body") })
    }
}

/// Returns the batch that was applied under the name of the new one, compared with its entries.
fn applied(known: Vec<Value>, entries: &[WrittenEntry<'_>]) -> Result<Option<AppliedBatch>> {
    if known.is_empty() {
        return Ok(None);
    }
    let (first, last, parent, standing): (u64, _, String, Vec<Element>) = read(Value::Array(known))?;
    let standing = standing.into_iter().map(Standing::new).collect::<Result<Vec<_>>>()?;
    let mut pairs = standing.iter().zip(entries);
    Ok(Some(AppliedBatch {
        before: Version(first.saturating_sub(1)),
        after: Version(last),
        parent: entry_id(&parent)?,
        same_entries: standing.len() == entries.len()
            && pairs.all(|(old, new)| new.matches_row(&old.turn, &old.body)),
    }))
}

/// Builds the entries of these segments from a script's reply.
fn entries(elements: Vec<Element>, segments: Vec<Segment>) -> Result<Vec<Entry>> {
    let mut log = LogReader::new(segments);
    for standing in elements.into_iter().map(Standing::new) {
        let Standing { seq, turn, body } = standing?;
        log.row(seq, &turn, &body)?;
    }
    log.finish()
}

fn segment((first, last, parent): (u64, u64, String)) -> Result<Segment> {
    Ok(Segment { first, last, parent: entry_id(&parent)? })
}

/// Parses an id that is written as text; an empty text is none.
fn entry_id(text: &str) -> Result<Option<EntryId>> {
    match text {
        "" => Ok(None),
        id => id.parse().map(EntryId).map(Some).map_err(|_| unexpected()),
    }
}

/// Reads a value of a reply. No script answers with a negative number, which the driver would wrap.
pub(crate) fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    if has_negative(&value) {
        return Err(unexpected());
    }
    from_redis_value(value).map_err(|_| unexpected())
}

fn has_negative(value: &Value) -> bool {
    match value {
        Value::Int(number) => *number < 0,
        Value::Array(values) => values.iter().any(has_negative),
        _ => false,
    }
}

fn unexpected() -> StoreError {
    StoreError::outcome_unknown("the server answers as no script of this crate does")
}
