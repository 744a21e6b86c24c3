//! One conversation's log in the database: its row, and the rows of its entries.

use advisor_core::{ConversationKey, TurnId};
use chat_memory_advisor::{Entry, EntryKind, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::failure::nothing_written;

/// The row of a conversation.
pub(crate) struct Log {
    pub(crate) id: i64,
    pub(crate) version: u64,
    /// The highest right to write that was seen.
    pub(crate) fence: Option<u64>,
}

impl Log {
    pub(crate) fn find(connection: &Connection, key: &ConversationKey) -> Result<Option<Self>, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT id, version, fence FROM conversations WHERE tenant = ?1 AND conversation = ?2",
            )
            .map_err(nothing_written)?;
        let found = statement.query_row(params![key.tenant(), key.conversation()], |row| {
            // All bits of a fence are kept; it is never compared in the database.
            let fence = row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
            Ok(Self { id: row.get(0)?, version: row.get(1)?, fence })
        });
        found.optional().map_err(nothing_written)
    }

    /// The row of a new conversation.
    pub(crate) fn begin(connection: &Connection, key: &ConversationKey) -> Result<Self, StoreError> {
        let mut statement = connection
            .prepare_cached("INSERT INTO conversations (tenant, conversation, version) VALUES (?1, ?2, 0)")
            .map_err(nothing_written)?;
        let id = statement.insert(params![key.tenant(), key.conversation()]).map_err(nothing_written)?;
        Ok(Self { id, version: 0, fence: None })
    }

    /// The number of the last turn; 0, there is none.
    pub(crate) fn last_turn(&self, connection: &Connection) -> Result<u64, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT turn_number FROM entries WHERE conversation = ?1 ORDER BY turn_number DESC LIMIT 1",
            )
            .map_err(nothing_written)?;
        let number = statement.query_row(params![self.id], |row| row.get(0)).optional();
        Ok(number.map_err(nothing_written)?.unwrap_or(0))
    }

    /// The statement that reads the rows `seq, turn, entry` after one entry up to another, in order.
    pub(crate) fn rows(connection: &Connection) -> Result<CachedStatement<'_>, StoreError> {
        let rows = connection.prepare_cached(
            "SELECT seq, turn, entry FROM entries
             WHERE conversation = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
        );
        rows.map_err(nothing_written)
    }

    /// The entries after this one up to that one, in order.
    pub(crate) fn entries(
        &self,
        connection: &Connection,
        after: u64,
        last: u64,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut statement = Self::rows(connection)?;
        let mut rows = statement.query(params![self.id, after, last]).map_err(nothing_written)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next().map_err(nothing_written)? {
            entries.push(read(row)?);
        }
        Ok(entries)
    }
}

/// The entry of a row of `seq, turn, entry`.
pub(crate) fn read(row: &Row<'_>) -> Result<Entry, StoreError> {
    let seq = row.get(0).map_err(nothing_written)?;
    let corrupt = |what: String| StoreError::Corrupt { seq, source: Some(what.into()) };
    let text = |column| {
        let text = row.get_ref(column).ok().and_then(|value| value.as_str().ok());
        text.ok_or_else(|| corrupt("a column of its row is no text in UTF-8".into()))
    };
    let turn = TurnId::new(text(1)?).map_err(|_| corrupt("the id of its turn is none".into()))?;
    // What the parser says may quote the conversation, so it is not passed on.
    let kind: EntryKind = serde_json::from_str(text(2)?).map_err(|error| {
        corrupt(format!(
            "its JSON is not that of an entry from line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    Ok(Entry::new(seq, turn, kind))
}
