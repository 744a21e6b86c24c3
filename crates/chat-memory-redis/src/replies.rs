//! The replies of the scripts.

use std::vec::IntoIter;

use conversation_store::{
    Admission, AppliedBatch, Batch, BranchIndex, Entry, EntryId, FencingToken, LogReader, LogState, Result,
    Segment, Snapshot, StoreError, Version, WrittenEntry, admit,
};
use redis::Value;

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

impl Reply {
    /// Parses a reply. Failures that every script may report become errors.
    pub(crate) fn from_value(value: Value) -> Result<Self> {
        let mut rest = list(value)?.into_iter();
        let word = text(rest.next().unwrap_or_default())?;
        match word.as_str() {
            "newer" => Err(lasting("a newer version of this crate wrote the conversation; update the crate")),
            "damaged" => Err(StoreError::Corrupt {
                seq: None,
                source: Some(
                    "keys of the conversation are missing or were changed, as an eviction does; set \
                     `maxmemory-policy` to `noeviction`"
                        .into(),
                ),
            }),
            _ => Ok(Self { word, rest }),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        number(&self.value())
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        text(self.value())
    }

    fn value(&mut self) -> Value {
        self.rest.next().unwrap_or_default()
    }

    /// Returns the result of an append; `None` if the conversation needs a new mark.
    pub(crate) fn outcome(
        mut self,
        expected: Version,
        batch: &Batch,
        entries: &[WrittenEntry<'_>],
    ) -> Result<Option<Version>> {
        match self.word.as_str() {
            "written" => return Ok(Some(Version::new(self.number()?))),
            "unmarked" => return Ok(None),
            "refused" => {}
            _ => return Err(unexpected()),
        }
        let version = Version::new(self.number()?);
        let (token, last_turn) = (self.text()?, bytes(self.value())?);
        let token = (!token.is_empty()).then(|| token.parse().map_err(|_| unexpected())).transpose()?;
        let state = LogState {
            version,
            token: token.map(FencingToken::new),
            last_turn: &last_turn,
            applied: applied(self.value(), entries)?,
        };
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
        let version = Version::new(self.number()?);
        let (open, turn_from, range_from) = (self.text()?, self.number()?, self.number()?);
        let segments = list(self.value())?.into_iter().map(segment).collect::<Result<Vec<_>, _>>()?;
        let entries = entries(self.value(), segments)?;
        Ok(Snapshot::from_read(version, entries, range_from, (open == "1").then_some(turn_from)))
    }

    /// Builds the entries after `after`.
    pub(crate) fn range(mut self, after: u64) -> Result<Vec<Entry>> {
        let Some(last) = self.found()? else { return Ok(Vec::new()) };
        let forks = forks(self.value())?;
        entries(self.value(), forks.range(after, last))
    }

    /// Returns the last entries of all branches.
    pub(crate) fn tips(mut self) -> Result<Vec<EntryId>> {
        let Some(version) = self.found()? else { return Ok(Vec::new()) };
        Ok(forks(self.value())?.tips(version))
    }

    /// Returns the number in the reply if the conversation exists.
    fn found(&mut self) -> Result<Option<u64>> {
        match self.word.as_str() {
            "none" => Ok(None),
            "found" => self.number().map(Some),
            _ => Err(unexpected()),
        }
    }
}

impl Standing {
    /// Parses an element of a stream: its id, then names and values of its fields.
    fn from_value(value: Value) -> Result<Self> {
        let mut parts = list(value)?.into_iter();
        let id = text(parts.next().unwrap_or_default())?;
        let seq = id.strip_suffix("-0").and_then(|seq| seq.parse().ok()).ok_or_else(unexpected)?;
        let mut standing = Self { seq, turn: Vec::new(), body: Vec::new() };
        let mut fields = list(parts.next().unwrap_or_default())?.into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            match bytes(name)?.as_slice() {
                b"turn" => standing.turn = bytes(value)?,
                b"body" => standing.body = bytes(value)?,
                _ => {}
            }
        }
        Ok(standing)
    }
}

/// Returns the batch that was applied under the name of the new one, compared with its entries.
fn applied(value: Value, entries: &[WrittenEntry<'_>]) -> Result<Option<AppliedBatch>> {
    let mut known = list(value)?.into_iter();
    let Some(first) = known.next() else { return Ok(None) };
    let mut next = || known.next().unwrap_or_default();
    let (first, last, parent) = (number(&first)?, number(&next())?, entry_id(next())?);
    let standing = list(next())?.into_iter().map(Standing::from_value).collect::<Result<Vec<_>, _>>()?;
    let mut pairs = standing.iter().zip(entries);
    Ok(Some(AppliedBatch {
        before: Version::new(first.saturating_sub(1)),
        after: Version::new(last),
        parent,
        same_entries: standing.len() == entries.len()
            && pairs.all(|(old, new)| new.matches_row(&old.turn, &old.body)),
    }))
}

/// Builds the entries of these segments from a script's reply.
fn entries(value: Value, segments: Vec<Segment>) -> Result<Vec<Entry>> {
    let mut log = LogReader::new(segments);
    for standing in list(value)?.into_iter().map(Standing::from_value) {
        let Standing { seq, turn, body } = standing?;
        log.row(seq, &turn, &body)?;
    }
    log.finish()
}

fn segment(value: Value) -> Result<Segment> {
    let mut parts = list(value)?.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    Ok(Segment { first: number(&next())?, last: number(&next())?, parent: entry_id(next())? })
}

fn forks(value: Value) -> Result<BranchIndex> {
    let fork = |value| match list(value)?.as_slice() {
        [first, parent] => Ok((number(first)?, EntryId::new(number(parent)?))),
        _ => Err(unexpected()),
    };
    list(value)?.into_iter().map(fork).collect()
}

/// Parses an id that is written as text; an empty text is none.
fn entry_id(value: Value) -> Result<Option<EntryId>> {
    match text(value)?.as_str() {
        "" => Ok(None),
        id => id.parse().map(EntryId::new).map(Some).map_err(|_| unexpected()),
    }
}

/// Returns the texts of a list.
pub(crate) fn texts(value: Value) -> Result<Vec<String>> {
    list(value)?.into_iter().map(text).collect()
}

pub(crate) fn number(value: &Value) -> Result<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    }
}

fn text(value: Value) -> Result<String> {
    String::from_utf8(bytes(value)?).map_err(|_| unexpected())
}

fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> StoreError {
    StoreError::outcome_unknown("the server answers as no script of this crate does")
}
