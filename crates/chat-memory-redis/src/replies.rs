//! What the scripts answer.

use std::vec::IntoIter;

use advisor_core::TurnId;
use chat_memory_advisor::{Batch, Entry, EntryKind, NewEntry, OpenTurn, Snapshot, StoreError, Version};
use redis::Value;

use crate::failure::lasting;
use crate::written::Written;

/// An answer: a word that says which, and what belongs to it.
pub(crate) struct Reply {
    pub(crate) word: String,
    rest: IntoIter<Value>,
}

/// An entry as it stands in the store. Its texts may be no text at all.
struct Standing {
    seq: u64,
    turn: Vec<u8>,
    body: Vec<u8>,
}

impl Reply {
    /// The answer. Those that every script may give are errors already.
    pub(crate) fn of(value: Value) -> Result<Self, StoreError> {
        let mut rest = list(value)?.into_iter();
        let word = text(rest.next().unwrap_or_default())?;
        match word.as_str() {
            "newer" => Err(lasting("a newer version of this crate wrote the conversation; update the crate")),
            "damaged" => Err(lasting(
                "keys of the conversation are missing or were changed, as an eviction does; restore them or \
                 delete the conversation, and set `maxmemory-policy` to `noeviction`",
            )),
            _ => Ok(Self { word, rest }),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        number(&self.value())
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        text(self.value())
    }

    fn value(&mut self) -> Value {
        self.rest.next().unwrap_or_default()
    }

    /// What an append came to, unless its conversation has to be marked anew.
    pub(crate) fn outcome(
        mut self,
        batch: &Batch,
        written: &[Written],
    ) -> Result<Option<Version>, StoreError> {
        match self.word.as_str() {
            "written" => Ok(Some(Version::new(self.number()?))),
            "unmarked" => Ok(None),
            "gone" => Err(StoreError::Gone),
            "fenced" => Err(StoreError::Fenced),
            "conflict" => Err(StoreError::Conflict { current: Version::new(self.number()?) }),
            "known" => {
                let version = Version::new(self.number()?);
                let standing =
                    list(self.value())?.into_iter().map(Standing::of).collect::<Result<Vec<_>, _>>()?;
                if same(&standing, batch, written) { Ok(Some(version)) } else { Err(StoreError::KeyReused) }
            }
            _ => Err(unheard_of()),
        }
    }

    pub(crate) fn snapshot(mut self) -> Result<Snapshot, StoreError> {
        match self.word.as_str() {
            "none" => return Ok(Snapshot::default()),
            "found" => {}
            _ => return Err(unheard_of()),
        }
        let mut snapshot = Snapshot::default();
        snapshot.version = Version::new(self.number()?);
        let (open, turn_from, view_from) = (self.text()? == "1", self.number()?, self.number()?);
        let standing = list(self.value())?.into_iter();
        let entries = standing.map(|entry| Standing::of(entry).and_then(Standing::entry));
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        if open {
            let before = entries.partition_point(|entry| entry.seq < turn_from);
            snapshot.open_turn = OpenTurn::of(entries.get(before..).unwrap_or_default());
        }
        let before = entries.partition_point(|entry| entry.seq < view_from);
        snapshot.entries = entries.split_off(before);
        Ok(snapshot)
    }
}

impl Standing {
    /// The entry of an element of a stream: its id, then names and values of its fields.
    fn of(value: Value) -> Result<Self, StoreError> {
        let mut parts = list(value)?.into_iter();
        let id = text(parts.next().unwrap_or_default())?;
        let seq = id.strip_suffix("-0").and_then(|seq| seq.parse().ok()).ok_or_else(unheard_of)?;
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

    fn entry(self) -> Result<Entry, StoreError> {
        let seq = self.seq;
        // What a parser says may quote the conversation, so it is not passed on.
        let corrupt = |what: &str| StoreError::Corrupt { seq, source: Some(what.into()) };
        let turn = std::str::from_utf8(&self.turn).ok().and_then(|turn| TurnId::new(turn).ok());
        let turn = turn.ok_or_else(|| corrupt("its turn has no valid id"))?;
        let kind =
            serde_json::from_slice(&self.body).map_err(|_| corrupt("its body is not one of an entry"))?;
        Ok(Entry::new(seq, turn, kind))
    }
}

/// Whether these entries are those of the batch. Another version may have written the same in other words.
fn same(standing: &[Standing], batch: &Batch, written: &[Written]) -> bool {
    let equal = |((old, new), entry): ((&Standing, &Written), &NewEntry)| {
        old.turn == new.turn.as_bytes()
            && (old.body == new.body.as_bytes()
                || serde_json::from_slice::<EntryKind>(&old.body).is_ok_and(|kind| kind == entry.kind))
    };
    standing.len() == written.len() && standing.iter().zip(written).zip(&batch.entries).all(equal)
}

/// The texts of a list.
pub(crate) fn texts(value: Value) -> Result<Vec<String>, StoreError> {
    list(value)?.into_iter().map(text).collect()
}

pub(crate) fn number(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unheard_of()),
        _ => Err(unheard_of()),
    }
}

fn text(value: Value) -> Result<String, StoreError> {
    String::from_utf8(bytes(value)?).map_err(|_| unheard_of())
}

fn bytes(value: Value) -> Result<Vec<u8>, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unheard_of()),
    }
}

fn list(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(unheard_of()),
    }
}

fn unheard_of() -> StoreError {
    StoreError::outcome_unknown("the server answers as no script of this crate does")
}
