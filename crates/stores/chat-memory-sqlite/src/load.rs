//! `load`, `read` and `branches`: which range of the log a view or a page covers.

use advisor_core::ConversationKey;
use conversation_store::{Entry, EntryId, ReadRange, Snapshot, StoreError, Version};
use rusqlite::Connection;

use crate::failure::Result;
use crate::log::Log;

/// Reads a range of a branch, the version and the open turn in one consistent snapshot. The branch is the one that
/// ends with `tip`, or the one that was written last. It reads little more than the returned entries.
pub(crate) fn load(
    connection: &mut Connection,
    key: &ConversationKey,
    tip: Option<EntryId>,
    range: ReadRange,
) -> Result<Snapshot> {
    // All reads of a transaction see the state at its first read.
    let transaction = connection.transaction()?;
    let log = Log::find(&transaction, key)?;
    let version = log.as_ref().map_or(0, |log| log.version);
    if let Some(id) = tip.filter(|tip| tip.0 > version) {
        return Err(StoreError::NoSuchEntry { id }.into());
    }
    let Some(log) = log else { return Ok(Snapshot::default()) };
    let tip = tip.map_or(version, |tip| tip.0);
    let place = log.place(&transaction, tip)?;
    let open_from = place.filter(|place| place.open).map(|place| place.turn_from);
    let range_from = log.range_from(&transaction, range, tip)?;
    let from = open_from.map_or(range_from, |open_from| open_from.min(range_from));
    let entries = log.entries(&transaction, log.path(&transaction, from, tip)?)?;
    Ok(Snapshot::from_read(Version(version), entries, range_from, open_from))
}

/// Reads up to `limit` entries after `after`, of all branches.
pub(crate) fn read(
    connection: &mut Connection,
    key: &ConversationKey,
    after: EntryId,
    limit: usize,
) -> Result<Vec<Entry>> {
    let transaction = connection.transaction()?;
    let Some(log) = Log::find(&transaction, key)? else { return Ok(Vec::new()) };
    let after = after.0;
    let last = after.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX)).min(log.version);
    if last <= after {
        return Ok(Vec::new());
    }
    let range = log.forks(&transaction, after, last)?.range(after, last);
    log.entries(&transaction, range)
}

/// Returns the last entries of all branches.
pub(crate) fn branches(connection: &mut Connection, key: &ConversationKey) -> Result<Vec<EntryId>> {
    let transaction = connection.transaction()?;
    let Some(log) = Log::find(&transaction, key)? else { return Ok(Vec::new()) };
    Ok(log.forks(&transaction, 0, log.version)?.tips(log.version))
}

impl Log {
    /// Returns the number of the first entry of the range on the path to `tip`.
    fn range_from(&self, connection: &Connection, range: ReadRange, tip: u64) -> Result<u64> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match range {
            ReadRange::All => Ok(1),
            ReadRange::LastEntries(0) => Ok(tip.saturating_add(1)),
            ReadRange::LastEntries(entries) => self.first_of_last(connection, count(entries), tip),
            ReadRange::LastTurns(turns) => self.first_of_turns(connection, count(turns), tip),
        }
    }

    /// Returns the first of the last `entries` entries on the path to `tip`.
    fn first_of_last(&self, connection: &Connection, entries: u64, tip: u64) -> Result<u64> {
        let (mut left, mut last) = (entries, tip);
        loop {
            let segment = self.segment(connection, last)?;
            let before = last.saturating_add(1).saturating_sub(segment.first);
            match segment.parent.map(|parent| parent.0) {
                Some(parent) if before < left && parent > 0 => (left, last) = (left - before, parent),
                _ => return Ok(last.saturating_add(1).saturating_sub(left).max(segment.first)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
