//! One conversation's log in the database: its row, and the rows of its entries.

use advisor_core::ConversationKey;
use chat_memory_advisor::{Entry, LogReader, Segment, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::failure::nothing_written;
use crate::path::Place;

/// The row of a conversation.
pub(crate) struct Log {
    pub(crate) id: i64,
    pub(crate) version: u64,
    /// The highest fence that was seen.
    pub(crate) fence: Option<u64>,
    /// What is known of the last entry.
    pub(crate) last: Place,
}

impl Log {
    pub(crate) fn find(connection: &Connection, key: &ConversationKey) -> Result<Option<Self>, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT turn, turn_from, open, id, version, fence FROM conversations
                 WHERE tenant = ?1 AND conversation = ?2",
            )
            .map_err(nothing_written)?;
        let found = statement.query_row(params![key.tenant(), key.conversation()], |row| {
            // All bits of a fence are kept; it is never compared in the database.
            let fence = row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned);
            Ok(Self { id: row.get(3)?, version: row.get(4)?, fence, last: Place::of(row)? })
        });
        found.optional().map_err(nothing_written)
    }

    /// The row of a new conversation.
    pub(crate) fn begin(connection: &Connection, key: &ConversationKey) -> Result<Self, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "INSERT INTO conversations (tenant, conversation, version, turn, turn_from, open)
                 VALUES (?1, ?2, 0, '', 1, 0)",
            )
            .map_err(nothing_written)?;
        let id = statement.insert(params![key.tenant(), key.conversation()]).map_err(nothing_written)?;
        Ok(Self { id, version: 0, fence: None, last: Place::BEGINNING })
    }

    /// The statement that reads the rows `seq, turn, entry` after one entry up to another, in order.
    pub(crate) fn rows(connection: &Connection) -> Result<CachedStatement<'_>, StoreError> {
        let rows = connection.prepare_cached(
            "SELECT seq, turn, entry FROM entries
             WHERE conversation = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
        );
        rows.map_err(nothing_written)
    }

    /// The entries of these segments, in order.
    pub(crate) fn entries(
        &self,
        connection: &Connection,
        segments: Vec<Segment>,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut statement = Self::rows(connection)?;
        let mut log = LogReader::new(segments.clone());
        for Segment { first, last, .. } in segments {
            let mut rows =
                statement.query(params![self.id, first.saturating_sub(1), last]).map_err(nothing_written)?;
            while let Some(row) = rows.next().map_err(nothing_written)? {
                log.row(row.get(0).map_err(nothing_written)?, bytes(row, 1), bytes(row, 2))?;
            }
        }
        log.finish()
    }
}

/// What stands in a column, whatever it is.
pub(crate) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> &'a [u8] {
    row.get_ref(column).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default()
}
