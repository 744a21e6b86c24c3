use advisor_core::ConversationKey;
use chat_memory_advisor::{EntryKind, OpenTurn, Snapshot, StoreError, Version, View};
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::nothing_written;
use crate::log::{Log, read};

/// Reads a view, the version and the open turn of a conversation, all of one moment. What it reads is
/// what it gives, and a few rows more.
pub(crate) fn load(
    connection: &mut Connection,
    key: &ConversationKey,
    view: View,
) -> Result<Snapshot, StoreError> {
    // All that is read in one transaction is of the moment of its first read.
    let transaction = connection.transaction().map_err(nothing_written)?;
    let Some(log) = Log::find(&transaction, key)? else { return Ok(Snapshot::default()) };
    let after = log.before_view(&transaction, view)?;
    let before_turn = log.before_last_turns(&transaction, 1)?;
    let open = log.is_open(&transaction, before_turn)?;
    let read_after = if open { after.min(before_turn) } else { after };
    let mut entries = log.entries(&transaction, read_after, log.version)?;
    let mut snapshot = Snapshot::default();
    snapshot.version = Version::new(log.version);
    if open {
        snapshot.open_turn = OpenTurn::of(&entries);
        entries.retain(|entry| entry.seq > after);
    }
    snapshot.entries = entries;
    Ok(snapshot)
}

impl Log {
    /// The number of the last entry before the view.
    fn before_view(&self, connection: &Connection, view: View) -> Result<u64, StoreError> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match view {
            View::All => Ok(0),
            View::LastEntries(entries) => Ok(self.version.saturating_sub(count(entries))),
            View::LastTurns(turns) => self.before_last_turns(connection, count(turns)),
            _ => Err(StoreError::Unsupported { what: "this kind of view" }),
        }
    }

    /// The number of the last entry before the last so many turns.
    fn before_last_turns(&self, connection: &Connection, turns: u64) -> Result<u64, StoreError> {
        let last = self.last_turn(connection)?;
        let mut statement = connection
            .prepare_cached(
                "SELECT seq FROM entries WHERE conversation = ?1 AND turn_number > ?2
                 ORDER BY turn_number, seq LIMIT 1",
            )
            .map_err(nothing_written)?;
        let first: Option<u64> = statement
            .query_row(params![self.id, last.saturating_sub(turns)], |row| row.get(0))
            .optional()
            .map_err(nothing_written)?;
        Ok(first.map_or(self.version, |first| first.saturating_sub(1)))
    }

    /// Whether the turn after this entry, the last one, has not ended: the last message or end decides.
    fn is_open(&self, connection: &Connection, before_turn: u64) -> Result<bool, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT seq, turn, entry FROM entries WHERE conversation = ?1 AND seq > ?2 ORDER BY seq DESC",
            )
            .map_err(nothing_written)?;
        let mut rows = statement.query(params![self.id, before_turn]).map_err(nothing_written)?;
        let mut any = false;
        while let Some(row) = rows.next().map_err(nothing_written)? {
            any = true;
            match read(row)?.kind {
                EntryKind::Message(_) => return Ok(true),
                EntryKind::TurnEnded(_) => return Ok(false),
                _ => {}
            }
        }
        // A turn of which nothing but other entries was written has not ended.
        Ok(any)
    }
}

#[cfg(test)]
mod tests;
