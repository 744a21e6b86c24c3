use advisor_core::{ConversationKey, TurnId};
use chat_memory_advisor::{Batch, BatchKey, EntryId, EntryKind, NewEntry, StoreError, Version};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::failure::{commit, lasting, nothing_written};
use crate::log::{Log, bytes};
use crate::path::Place;

/// Appends a batch in one transaction that no other write can come between.
///
/// However late it runs, it looks at the key, the fence and the version before it writes.
pub(crate) fn append(
    connection: &mut Connection,
    key: &ConversationKey,
    expected: Version,
    batch: &Batch,
    largest: usize,
) -> Result<Version, StoreError> {
    let entries = encode(&batch.entries, largest)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(nothing_written)?;
    let log = Log::find(&transaction, key)?;
    if let (None, true, Some(id)) = (&log, expected == Version::EMPTY, batch.parent)
        && id > EntryId::BEGINNING
    {
        return Err(StoreError::NoSuchEntry { id });
    }
    let log = match log {
        // A conversation that is not there is only made by a batch that expects it so.
        None if expected > Version::EMPTY || batch.last_turn.is_some() => return Err(StoreError::Gone),
        None if entries.is_empty() => return Ok(Version::EMPTY),
        None => Log::begin(&transaction, key)?,
        Some(log) => log,
    };
    if let Some((before, after)) = log.batch(&transaction, &batch.key)? {
        let same = log.holds(&transaction, before, after, &entries)?
            && (before == after || log.fork(&transaction, before)? == parent_after(before, batch));
        return if same { Ok(Version::new(after)) } else { Err(StoreError::KeyReused) };
    }
    if batch.fence.is_some() && batch.fence.map(|own| own.as_u64()) < log.fence {
        return Err(StoreError::Fenced);
    }
    if Version::new(log.version) != expected {
        return Err(StoreError::Conflict { current: Version::new(log.version) });
    }
    if batch.last_turn.as_ref().is_some_and(|turn| turn.as_str().as_bytes() != log.last.turn) {
        return Err(StoreError::Gone);
    }
    if let Some(id) = batch.parent.filter(|parent| parent.as_u64() > log.version) {
        return Err(StoreError::NoSuchEntry { id });
    }
    let version = log.write(&transaction, batch, &entries)?;
    commit(transaction)?;
    Ok(version)
}

/// An entry and its JSON form.
type Encoded<'a> = (&'a NewEntry, String);

/// The entries in their JSON form, which has `largest` bytes in all at the most.
fn encode(entries: &[NewEntry], largest: usize) -> Result<Vec<Encoded<'_>>, StoreError> {
    let mut left = largest;
    let mut encoded = Vec::with_capacity(entries.len());
    for entry in entries {
        // What the encoder says may quote the conversation, so it is not passed on.
        let json = serde_json::to_string(&entry.kind).map_err(|_| lasting("an entry has no JSON form"))?;
        left = left.checked_sub(json.len()).ok_or(StoreError::TooLarge)?;
        encoded.push((entry, json));
    }
    Ok(encoded)
}

impl Log {
    /// The versions before and after the batch of this key, if it was applied.
    fn batch(&self, transaction: &Transaction<'_>, key: &BatchKey) -> Result<Option<(u64, u64)>, StoreError> {
        let mut statement = transaction
            .prepare_cached(
                "SELECT before, after FROM batches
                 WHERE conversation = ?1 AND turn = ?2 AND round = ?3 AND step = ?4",
            )
            .map_err(nothing_written)?;
        let of_key = params![self.id, key.turn.as_str(), key.round, key.step.as_str()];
        let found = statement.query_row(of_key, |row| Ok((row.get(0)?, row.get(1)?)));
        found.optional().map_err(nothing_written)
    }

    /// Whether the log holds these entries between two versions. Equal JSON says the same; other JSON may,
    /// too, since another version of this program may have written it.
    fn holds(
        &self,
        transaction: &Transaction<'_>,
        before: u64,
        after: u64,
        entries: &[Encoded<'_>],
    ) -> Result<bool, StoreError> {
        let mut statement = Self::rows(transaction)?;
        let mut rows = statement.query(params![self.id, before, after]).map_err(nothing_written)?;
        let mut entries = entries.iter();
        while let Some(row) = rows.next().map_err(nothing_written)? {
            let Some((new, json)) = entries.next() else { return Ok(false) };
            let column = |column| row.get_ref(column).ok().and_then(|value| value.as_str().ok());
            if column(1) == Some(new.turn.as_str()) && column(2) == Some(json) {
                continue;
            }
            let (turn, kind) = (bytes(row, 1), bytes(row, 2));
            // One that is damaged is taken for what was written under the key.
            let turn = std::str::from_utf8(turn).ok().and_then(|turn| TurnId::new(turn).ok());
            let kind: Option<EntryKind> = serde_json::from_slice(kind).ok();
            if turn.is_some_and(|turn| turn != new.turn) || kind.is_some_and(|kind| kind != new.kind) {
                return Ok(false);
            }
        }
        Ok(entries.next().is_none())
    }

    /// What the entry after this one follows, where that is another one.
    fn fork(&self, transaction: &Transaction<'_>, before: u64) -> Result<Option<EntryId>, StoreError> {
        let after = before.saturating_add(1);
        let segment = self.segment(transaction, after)?;
        Ok(segment.parent.filter(|_| segment.first == after))
    }

    /// Writes a batch after the last entry and gives the version that this leads to.
    fn write(
        &self,
        transaction: &Transaction<'_>,
        batch: &Batch,
        entries: &[Encoded<'_>],
    ) -> Result<Version, StoreError> {
        let version = Version::new(self.version).after(entries.len()).as_u64();
        let last = self.write_entries(transaction, parent_after(self.version, batch), entries)?;
        let last = last.as_ref().unwrap_or(&self.last);
        transaction
            .prepare_cached(
                "INSERT INTO batches (conversation, turn, round, step, before, after)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut statement| {
                let BatchKey { turn, round, step, .. } = &batch.key;
                let key = (turn.as_str(), round, step.as_str());
                statement.execute(params![self.id, key.0, key.1, key.2, self.version, version])
            })
            .map_err(nothing_written)?;
        let fence = batch.fence.map(|fence| fence.as_u64()).or(self.fence).map(u64::cast_signed);
        transaction
            .prepare_cached(
                "UPDATE conversations SET version = ?2, fence = ?3, turn = CAST(?4 AS TEXT), turn_from = ?5, open = ?6
                 WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement.execute(params![self.id, version, fence, last.turn, last.turn_from, last.open])
            })
            .map_err(nothing_written)?;
        Ok(Version::new(version))
    }

    /// Writes entries, the first of them behind this parent, and gives the place of the last one.
    fn write_entries(
        &self,
        transaction: &Transaction<'_>,
        parent: Option<EntryId>,
        entries: &[Encoded<'_>],
    ) -> Result<Option<Place>, StoreError> {
        let first = self.version.saturating_add(1);
        let behind = match parent.filter(|_| !entries.is_empty()) {
            Some(parent) => Some(self.branch_off(transaction, first, parent)?),
            None => None,
        };
        let mut before = behind.as_ref().unwrap_or(&self.last);
        let mut statement = transaction
            .prepare_cached(
                "INSERT INTO entries (conversation, seq, turn_from, open, turn, entry)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .map_err(nothing_written)?;
        let mut last = None;
        for (seq, (entry, json)) in (first..).zip(entries) {
            let place = place_after(before, seq, entry);
            let turn = entry.turn.as_str();
            statement
                .execute(params![self.id, seq, place.turn_from, place.open, turn, json])
                .map_err(nothing_written)?;
            before = last.insert(place);
        }
        Ok(last)
    }

    /// Notes that this entry follows that parent, and gives the parent's place.
    fn branch_off(
        &self,
        transaction: &Transaction<'_>,
        first: u64,
        parent: EntryId,
    ) -> Result<Place, StoreError> {
        transaction
            .prepare_cached("INSERT INTO forks (conversation, first, parent) VALUES (?1, ?2, ?3)")
            .and_then(|mut statement| statement.execute(params![self.id, first, parent.as_u64()]))
            .map_err(nothing_written)?;
        Ok(self.place(transaction, parent.as_u64())?.unwrap_or(Place::BEGINNING))
    }
}

/// The place of an entry that follows another one.
fn place_after(before: &Place, seq: u64, entry: &NewEntry) -> Place {
    let turn = entry.turn.as_str().as_bytes();
    let goes_on = before.turn == turn;
    Place {
        turn: turn.to_vec(),
        turn_from: if goes_on { before.turn_from } else { seq },
        open: match entry.kind {
            EntryKind::Message(_) => true,
            EntryKind::TurnEnded(_) => false,
            _ => before.open || !goes_on,
        },
    }
}

/// What the first entry of a batch follows, where that is not the entry before its place.
fn parent_after(before: u64, batch: &Batch) -> Option<EntryId> {
    batch.parent.filter(|parent| parent.as_u64() != before)
}

#[cfg(test)]
mod tests;
