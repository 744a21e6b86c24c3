//! The log of one conversation in the database: its row, the rows of its entries, and its branches.

use advisor_core::ConversationKey;
use conversation_store::{BranchIndex, Entry, EntryId, LogReader, Segment, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::failure::{Failure, Result, damaged};

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
                Err(damaged(Some(log.version.saturating_add(1)), "its row is older than its entries").into())
            }
            found => Ok(found),
        }
    }

    /// Returns the row of a conversation, even if entries beyond its version exist.
    pub(crate) fn find_any(connection: &Connection, key: &ConversationKey) -> Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT turn, turn_from, open, id, version, fence, EXISTS (
                     SELECT 1 FROM entries WHERE entries.conversation = conversations.id AND seq > version
                 ) FROM conversations WHERE tenant = ?1 AND conversation = ?2",
        )?;
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
        Ok(found.optional()?)
    }

    /// Inserts the row of a new conversation.
    pub(crate) fn begin(connection: &Connection, key: &ConversationKey, token: Option<u64>) -> Result<Self> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO conversations (tenant, conversation, version, fence, turn, turn_from, open)
                 VALUES (?1, ?2, 0, ?3, '', 1, 0)",
        )?;
        let row = params![key.tenant(), key.conversation(), token.map(u64::cast_signed)];
        let id = statement.insert(row)?;
        Ok(Self { id, version: 0, token, last: Place::BEGINNING, has_more: false })
    }

    /// Returns the highest fencing token of a conversation that does not exist, if it had one before its deletion.
    pub(crate) fn token_of_deleted(connection: &Connection, key: &ConversationKey) -> Result<Option<u64>> {
        let mut statement =
            connection.prepare_cached("SELECT fence FROM fences WHERE tenant = ?1 AND conversation = ?2")?;
        let found =
            statement.query_row(params![key.tenant(), key.conversation()], |row| row.get::<_, i64>(0));
        Ok(found.optional()?.map(i64::cast_unsigned))
    }

    /// Returns the error for an expected conversation without a row: it was deleted, or its index is damaged.
    ///
    /// It scans the rows of all conversations without the index.
    pub(crate) fn gone(connection: &Connection, key: &ConversationKey) -> Failure {
        let looked = connection.query_row(
            "SELECT 1 FROM conversations NOT INDEXED WHERE tenant = ?1 AND conversation = ?2",
            params![key.tenant(), key.conversation()],
            |_| Ok(()),
        );
        match looked.optional() {
            Ok(None) => StoreError::Gone.into(),
            Ok(Some(())) => damaged(None, "the index of conversations has lost it").into(),
            Err(error) => error.into(),
        }
    }

    /// Prepares the query of the columns `seq, turn, entry, turn_from, open, sum` for the entries after one number
    /// up to another, in order.
    pub(crate) fn rows(connection: &Connection) -> Result<CachedStatement<'_>> {
        let rows = connection.prepare_cached(
            "SELECT seq, turn, entry, turn_from, open, sum FROM entries
             WHERE conversation = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
        );
        Ok(rows?)
    }

    /// Reads the entries of these segments, in order.
    pub(crate) fn entries(&self, connection: &Connection, segments: Vec<Segment>) -> Result<Vec<Entry>> {
        let mut statement = Self::rows(connection)?;
        let mut log = LogReader::new(segments.clone());
        for Segment { first, last, .. } in segments {
            let mut rows = statement.query(params![self.id, first.saturating_sub(1), last])?;
            while let Some(row) = rows.next()? {
                let (seq, turn, entry) = (row.get(0)?, bytes(row, 1), bytes(row, 2));
                if self.is_as_written(row, seq) {
                    log.row(seq, turn, entry)?;
                } else {
                    log.damaged_row(seq, turn, entry)?;
                }
            }
        }
        Ok(log.finish()?)
    }

    /// Returns whether a row's checksum matches this entry.
    pub(crate) fn is_as_written(&self, row: &Row<'_>, seq: u64) -> bool {
        let (Ok(turn_from), Ok(open)) = (row.get(3), row.get(4)) else { return false };
        row.get(5) == Ok(self.sum(seq, turn_from, open, bytes(row, 1), bytes(row, 2)))
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

/// The position of an entry in its turn and branch, without its content.
pub(crate) struct Place {
    /// The id of its turn, as bytes: a damaged row must not prevent further writes.
    pub(crate) turn: Vec<u8>,
    /// The first entry of its turn on its branch.
    pub(crate) turn_from: u64,
    /// Whether the turn is open after this entry.
    pub(crate) open: bool,
}

impl Place {
    /// The place before the first entry.
    pub(crate) const BEGINNING: Self = Self { turn: Vec::new(), turn_from: 1, open: false };

    /// Reads the place from the columns `turn, turn_from, open` of a row.
    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { turn: bytes(row, 0).to_vec(), turn_from: row.get(1)?, open: row.get(2)? })
    }
}

/// The forks of a log, and the path to a tip.
impl Log {
    /// Returns the segment that ends with this entry and begins at the last fork. Costs one index seek.
    pub(crate) fn segment(&self, connection: &Connection, last: u64) -> Result<Segment> {
        let mut statement = connection.prepare_cached(
            "SELECT first, parent FROM forks WHERE conversation = ?1 AND first <= ?2
                 ORDER BY first DESC LIMIT 1",
        )?;
        let fork = statement.query_row(params![self.id, last], |row| Ok((row.get(0)?, row.get(1)?)));
        let fork: Option<(u64, u64)> = fork.optional()?;
        let (first, parent) = fork.map_or((1, None), |(first, parent)| (first, Some(EntryId(parent))));
        Ok(Segment { first, last, parent })
    }

    /// Returns the path to `tip`, from entry `from` on. `from` is on the path, or is 1, or is beyond the tip.
    pub(crate) fn path(&self, connection: &Connection, from: u64, tip: u64) -> Result<Vec<Segment>> {
        let mut path = Vec::new();
        let mut last = tip;
        while last >= from.max(1) {
            let mut segment = self.segment(connection, last)?;
            // The table ensures that a parent precedes its child.
            last = segment.parent.map_or(0, |parent| parent.0);
            if segment.first < from {
                (segment.first, segment.parent) = (from, None);
            }
            path.push(segment);
        }
        path.reverse();
        Ok(path)
    }

    /// Returns all forks after one entry, up to another.
    pub(crate) fn forks(&self, connection: &Connection, after: u64, last: u64) -> Result<BranchIndex> {
        let mut statement = connection.prepare_cached(
            "SELECT first, parent FROM forks WHERE conversation = ?1 AND first > ?2 AND first <= ?3",
        )?;
        let rows = statement
            .query_map(params![self.id, after, last], |row| Ok((row.get(0)?, EntryId(row.get(1)?))))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the place of an entry; if it is missing, that of the last entry before it on its branch.
    pub(crate) fn place(&self, connection: &Connection, seq: u64) -> Result<Option<Place>> {
        let mut statement = connection.prepare_cached(
            "SELECT turn, turn_from, open FROM entries WHERE conversation = ?1 AND seq BETWEEN ?2 AND ?3
                 ORDER BY seq DESC LIMIT 1",
        )?;
        let mut last = seq;
        while last > 0 {
            let segment = self.segment(connection, last)?;
            let place = statement.query_row(params![self.id, segment.first, last], Place::from_row);
            if let Some(place) = place.optional()? {
                return Ok(Some(place));
            }
            last = segment.parent.map_or(0, |parent| parent.0);
        }
        Ok(None)
    }

    /// Returns the first entry of the last `turns` turns on the path to `tip`; at least 1. Costs one or two
    /// lookups per turn.
    pub(crate) fn first_of_turns(&self, connection: &Connection, turns: u64, tip: u64) -> Result<u64> {
        let (mut first, mut last) = (tip.saturating_add(1), tip);
        // A log has no more turns than entries.
        if turns >= tip {
            return Ok(1);
        }
        for _ in 0..turns {
            let Some(place) = self.place(connection, last)? else { return Ok(1) };
            first = place.turn_from;
            let segment = self.segment(connection, first)?;
            last = match segment.parent {
                Some(parent) if segment.first == first => parent.0,
                _ => first.saturating_sub(1),
            };
        }
        Ok(first)
    }
}

/// Returns the bytes of a column of any type; empty if it has none.
pub(crate) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> &'a [u8] {
    row.get_ref(column).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default()
}
