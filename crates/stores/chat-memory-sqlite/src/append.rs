//! `append`: one transaction that reads the state, lets `admit` decide, then writes and reads the entries back.

use advisor_core::ConversationKey;
use conversation_store::{
    Admission, AppliedBatch, Batch, BatchKey, EntryId, FencingToken, LogState, StoreError, TurnEffect,
    Version, WrittenEntry, admit,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::failure::{Result, commit, damaged};
use crate::log::{Log, Place, bytes};

/// The maximum size of a batch in bytes: its entries as JSON and the ids of their turns.
const LARGEST_BATCH: usize = 64 << 20;

/// Appends a batch in one transaction that excludes other writers.
///
/// However late it runs, it checks key, fencing token and version before it writes.
pub(crate) fn append(
    connection: &mut Connection,
    key: &ConversationKey,
    expected: Version,
    batch: &Batch,
) -> Result<Version> {
    let entries = batch.written(LARGEST_BATCH)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = Log::find(&transaction, key)?;
    let token = match &found {
        Some(log) => log.token,
        None => Log::token_of_deleted(&transaction, key)?,
    };
    let state = LogState {
        version: Version(found.as_ref().map_or(0, |log| log.version)),
        token: token.map(FencingToken),
        last_turn: found.as_ref().map_or(&[], |log| &log.last.turn),
        applied: match &found {
            Some(log) => log.applied(&transaction, &batch.key, &entries)?,
            None => None,
        },
    };
    match admit(&state, expected, batch) {
        Ok(Admission::Write) => {}
        Ok(Admission::Done(version)) => return Ok(version),
        Err(StoreError::Gone) if found.is_none() => return Err(Log::gone(&transaction, key)),
        Err(refused) => return Err(refused.into()),
    }
    let log = match found {
        Some(log) => log,
        None => Log::begin(&transaction, key, token)?,
    };
    let version = log.write(&transaction, batch, &entries)?;
    log.read_back(&transaction, key, version, &entries)?;
    commit(transaction)?;
    Ok(version)
}

impl Log {
    /// Returns the batch that was applied under this key, compared with these entries.
    fn applied(
        &self,
        transaction: &Transaction<'_>,
        key: &BatchKey,
        entries: &[WrittenEntry<'_>],
    ) -> Result<Option<AppliedBatch>> {
        let Some((before, after)) = self.batch(transaction, key)? else { return Ok(None) };
        Ok(Some(AppliedBatch {
            before: Version(before),
            after: Version(after),
            parent: self.fork(transaction, before)?,
            same_entries: self.holds(transaction, before, after, entries)?,
        }))
    }

    /// Returns the versions before and after the batch with this key, if it was applied.
    fn batch(&self, transaction: &Transaction<'_>, key: &BatchKey) -> Result<Option<(u64, u64)>> {
        let mut statement = transaction.prepare_cached(
            "SELECT before, after FROM batches
                 WHERE conversation = ?1 AND turn = ?2 AND round = ?3 AND step = ?4",
        )?;
        let of_key = params![self.id, key.turn.as_str(), key.round, key.step.as_str()];
        let found = statement.query_row(of_key, |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?)
    }

    /// Returns whether these entries are the ones between two versions.
    fn holds(
        &self,
        transaction: &Transaction<'_>,
        before: u64,
        after: u64,
        entries: &[WrittenEntry<'_>],
    ) -> Result<bool> {
        let mut statement = Self::rows(transaction)?;
        let mut rows = statement.query(params![self.id, before, after])?;
        let mut entries = entries.iter();
        while let Some(row) = rows.next()? {
            if !entries.next().is_some_and(|new| new.matches_row(bytes(row, 1), bytes(row, 2))) {
                return Ok(false);
            }
        }
        Ok(entries.next().is_none())
    }

    /// Reads the written entries in the way a load does, before the append is acknowledged.
    fn read_back(
        &self,
        transaction: &Transaction<'_>,
        key: &ConversationKey,
        version: Version,
        entries: &[WrittenEntry<'_>],
    ) -> Result {
        let first = self.version.saturating_add(1);
        let unlike = || damaged(Some(first), "the entries read back differ from the written ones");
        let log = Self::find(transaction, key)?.ok_or_else(unlike)?;
        let mut statement = Self::rows(transaction)?;
        let mut rows = statement.query(params![log.id, self.version, log.version])?;
        let mut next = self.version;
        for entry in entries {
            next = next.saturating_add(1);
            let row = rows.next()?.ok_or_else(unlike)?;
            let is_entry = row.get::<_, u64>(0).is_ok_and(|seq| seq == next)
                && (bytes(row, 1), bytes(row, 2)) == (entry.turn.as_bytes(), entry.body.as_bytes())
                && log.is_as_written(row, next);
            if !is_entry {
                return Err(unlike().into());
            }
        }
        if (log.id, log.version) == (self.id, version.0) { Ok(()) } else { Err(unlike().into()) }
    }

    /// Returns the parent of the entry after `before`, if a branch starts there.
    fn fork(&self, transaction: &Transaction<'_>, before: u64) -> Result<Option<EntryId>> {
        let after = before.saturating_add(1);
        let segment = self.segment(transaction, after)?;
        Ok(segment.parent.filter(|_| segment.first == after))
    }

    /// Writes a batch after the last entry and returns the resulting version.
    fn write(
        &self,
        transaction: &Transaction<'_>,
        batch: &Batch,
        entries: &[WrittenEntry<'_>],
    ) -> Result<Version> {
        let version = Version(self.version).after(entries.len()).0;
        let last = self.write_entries(transaction, batch.fork_at(Version(self.version)), entries)?;
        let last = last.as_ref().unwrap_or(&self.last);
        let BatchKey { turn, round, step, .. } = &batch.key;
        let row = params![self.id, turn.as_str(), round, step.as_str(), self.version, version];
        let sql = "INSERT INTO batches (conversation, turn, round, step, before, after)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        transaction.prepare_cached(sql)?.execute(row)?;
        let token = batch.token.map(|token| token.0).or(self.token).map(u64::cast_signed);
        let row = params![self.id, version, token, last.turn, last.turn_from, last.open];
        let sql = "UPDATE conversations SET version = ?2, fence = ?3, turn = CAST(?4 AS TEXT), turn_from = ?5, open = ?6
                 WHERE id = ?1";
        transaction.prepare_cached(sql)?.execute(row)?;
        Ok(Version(version))
    }

    /// Writes entries, the first of them after `parent` if one is given. Returns the place of the last one.
    fn write_entries(
        &self,
        transaction: &Transaction<'_>,
        parent: Option<EntryId>,
        entries: &[WrittenEntry<'_>],
    ) -> Result<Option<Place>> {
        let first = self.version.saturating_add(1);
        let behind = match parent {
            Some(parent) => Some(self.fork_point(transaction, first, parent)?),
            None => None,
        };
        let mut before = behind.as_ref().unwrap_or(&self.last);
        let mut statement = transaction.prepare_cached(
            "INSERT INTO entries (conversation, seq, turn_from, open, turn, entry, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let mut last = None;
        for (seq, entry) in (first..).zip(entries) {
            let place = place_after(before, seq, entry);
            let sum =
                self.sum(seq, place.turn_from, place.open, entry.turn.as_bytes(), entry.body.as_bytes());
            statement
                .execute(params![self.id, seq, place.turn_from, place.open, entry.turn, entry.body, sum])?;
            before = last.insert(place);
        }
        Ok(last)
    }

    /// Records a fork and returns the place of the parent.
    fn fork_point(&self, transaction: &Transaction<'_>, first: u64, parent: EntryId) -> Result<Place> {
        let sql = "INSERT INTO forks (conversation, first, parent) VALUES (?1, ?2, ?3)";
        transaction.prepare_cached(sql)?.execute(params![self.id, first, parent.0])?;
        Ok(self.place(transaction, parent.0)?.unwrap_or(Place::BEGINNING))
    }
}

/// Returns the place of an entry that follows `before`.
fn place_after(before: &Place, seq: u64, entry: &WrittenEntry<'_>) -> Place {
    let turn = entry.turn.as_bytes();
    let goes_on = before.turn == turn;
    Place {
        turn: turn.to_vec(),
        turn_from: if goes_on { before.turn_from } else { seq },
        open: match entry.effect {
            TurnEffect::Opens => true,
            TurnEffect::Ends => false,
            TurnEffect::Unchanged => before.open || !goes_on,
        },
    }
}

#[cfg(test)]
mod tests;
