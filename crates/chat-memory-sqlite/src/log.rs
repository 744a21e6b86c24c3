//! The log of one conversation in the database: its row, and the rows of its entries.

pub(crate) mod path;

use advisor_core::ConversationKey;
use conversation_store::{Entry, LogReader, Result, Segment, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::failure::{damaged, nothing_written};
use crate::log::path::Place;

/// The row of a conversation.
pub(crate) struct Log {
    pub(crate) id: i64,
    pub(crate) version: u64,
    /// The highest fencing token seen.
    pub(crate) token: Option<u64>,
    /// The place of the last entry.
    pub(crate) last: Place,
    /// Whether entries beyond the version exist.
    has_more: bool,
}

impl Log {
    /// Returns the row of a conversation, if it exists. Fails if entries beyond its version exist.
    pub(crate) fn find(connection: &Connection, key: &ConversationKey) -> Result<Option<Self>> {
        match Self::find_any(connection, key)? {
            Some(log) if log.has_more => {
                Err(damaged(Some(log.version.saturating_add(1)), "its row is older than its entries"))
            }
            found => Ok(found),
        }
    }

    /// Returns the row of a conversation, even if entries beyond its version exist.
    pub(crate) fn find_any(connection: &Connection, key: &ConversationKey) -> Result<Option<Self>> {
        let mut statement = connection
            .prepare_cached(
                "SELECT turn, turn_from, open, id, version, fence, EXISTS (
                     SELECT 1 FROM entries WHERE entries.conversation = conversations.id AND seq > version
                 ) FROM conversations WHERE tenant = ?1 AND conversation = ?2",
            )
            .map_err(nothing_written)?;
        let found = statement.query_row(params![key.tenant(), key.conversation()], |row| {
            // All 64 bits of a token are kept; the database never compares it.
            let token = row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned);
            Ok(Self {
                id: row.get(3)?,
                version: row.get(4)?,
                token,
                last: Place::from_row(row)?,
                has_more: row.get(6)?,
            })
        });
        found.optional().map_err(nothing_written)
    }

    /// Inserts the row of a new conversation.
    pub(crate) fn begin(connection: &Connection, key: &ConversationKey, token: Option<u64>) -> Result<Self> {
        let mut statement = connection
            .prepare_cached(
                "INSERT INTO conversations (tenant, conversation, version, fence, turn, turn_from, open)
                 VALUES (?1, ?2, 0, ?3, '', 1, 0)",
            )
            .map_err(nothing_written)?;
        let row = params![key.tenant(), key.conversation(), token.map(u64::cast_signed)];
        let id = statement.insert(row).map_err(nothing_written)?;
        Ok(Self { id, version: 0, token, last: Place::BEGINNING, has_more: false })
    }

    /// Returns the highest fencing token of a conversation that does not exist, if it had one before its deletion.
    pub(crate) fn token_of_deleted(connection: &Connection, key: &ConversationKey) -> Result<Option<u64>> {
        let mut statement = connection
            .prepare_cached("SELECT fence FROM fences WHERE tenant = ?1 AND conversation = ?2")
            .map_err(nothing_written)?;
        let found =
            statement.query_row(params![key.tenant(), key.conversation()], |row| row.get::<_, i64>(0));
        Ok(found.optional().map_err(nothing_written)?.map(i64::cast_unsigned))
    }

    /// Returns the error for an expected conversation without a row: it was deleted, or its index is damaged.
    ///
    /// It scans the rows of all conversations without the index.
    pub(crate) fn gone(connection: &Connection, key: &ConversationKey) -> StoreError {
        let looked = connection.query_row(
            "SELECT 1 FROM conversations NOT INDEXED WHERE tenant = ?1 AND conversation = ?2",
            params![key.tenant(), key.conversation()],
            |_| Ok(()),
        );
        match looked.optional() {
            Ok(None) => StoreError::Gone,
            Ok(Some(())) => damaged(None, "the index of conversations has lost it"),
            Err(error) => nothing_written(error),
        }
    }

    /// Prepares the query of the columns `seq, turn, entry, turn_from, open, sum` for the entries after one number
    /// up to another, in order.
    pub(crate) fn rows(connection: &Connection) -> Result<CachedStatement<'_>> {
        let rows = connection.prepare_cached(
            "SELECT seq, turn, entry, turn_from, open, sum FROM entries
             WHERE conversation = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
        );
        rows.map_err(nothing_written)
    }

    /// Reads the entries of these segments, in order.
    pub(crate) fn entries(&self, connection: &Connection, segments: Vec<Segment>) -> Result<Vec<Entry>> {
        let mut statement = Self::rows(connection)?;
        let mut log = LogReader::new(segments.clone());
        for Segment { first, last, .. } in segments {
            let mut rows =
                statement.query(params![self.id, first.saturating_sub(1), last]).map_err(nothing_written)?;
            while let Some(row) = rows.next().map_err(nothing_written)? {
                let (seq, turn, entry) = (row.get(0).map_err(nothing_written)?, bytes(row, 1), bytes(row, 2));
                if self.is_as_written(row, seq) {
                    log.row(seq, turn, entry)?;
                } else {
                    log.damaged_row(seq, turn, entry)?;
                }
            }
        }
        log.finish()
    }

    /// Returns whether a row's checksum matches this entry. Older rows have none and always match.
    pub(crate) fn is_as_written(&self, row: &Row<'_>, seq: u64) -> bool {
        let (Ok(turn_from), Ok(open)) = (row.get(3), row.get(4)) else { return false };
        match row.get::<_, Option<u32>>(5) {
            Ok(sum) => {
                sum.is_none_or(|sum| sum == self.sum(seq, turn_from, open, bytes(row, 1), bytes(row, 2)))
            }
            Err(_) => false,
        }
    }

    /// Returns the checksum of an entry's row: a CRC-32 of its conversation, its number and its columns.
    pub(crate) fn sum(&self, seq: u64, turn_from: u64, open: bool, turn: &[u8], entry: &[u8]) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.id.to_le_bytes());
        sum.update(&seq.to_le_bytes());
        sum.update(&turn_from.to_le_bytes());
        sum.update(&[u8::from(open)]);
        sum.update(turn);
        // A byte that no UTF-8 text contains separates the two columns.
        sum.update(&[0xFF]);
        sum.update(entry);
        sum.finalize()
    }
}

/// Returns the bytes of a column of any type; empty if it has none.
pub(crate) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> &'a [u8] {
    row.get_ref(column).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default()
}
