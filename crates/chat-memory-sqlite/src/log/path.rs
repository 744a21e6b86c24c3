//! The branches of a log: their forks, and the path to a tip.

use conversation_store::{BranchIndex, EntryId, Result, Segment};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::nothing_written;
use crate::log::{Log, bytes};

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

impl Log {
    /// Returns the segment that ends with this entry and begins at the last fork. Costs one index seek.
    pub(crate) fn segment(&self, connection: &Connection, last: u64) -> Result<Segment> {
        let mut statement = connection
            .prepare_cached(
                "SELECT first, parent FROM forks WHERE conversation = ?1 AND first <= ?2
                 ORDER BY first DESC LIMIT 1",
            )
            .map_err(nothing_written)?;
        let fork = statement.query_row(params![self.id, last], |row| Ok((row.get(0)?, row.get(1)?)));
        let fork: Option<(u64, u64)> = fork.optional().map_err(nothing_written)?;
        let (first, parent) = fork.map_or((1, None), |(first, parent)| (first, Some(EntryId::new(parent))));
        Ok(Segment::new(first, last, parent))
    }

    /// Returns the path to `tip`, from entry `from` on. `from` is on the path, or is 1, or is beyond the tip.
    pub(crate) fn path(&self, connection: &Connection, from: u64, tip: u64) -> Result<Vec<Segment>> {
        let mut path = Vec::new();
        let mut last = tip;
        while last >= from.max(1) {
            let mut segment = self.segment(connection, last)?;
            // The table ensures that a parent precedes its child.
            last = segment.parent.map_or(0, EntryId::as_u64);
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
        let mut statement = connection
            .prepare_cached(
                "SELECT first, parent FROM forks WHERE conversation = ?1 AND first > ?2 AND first <= ?3",
            )
            .map_err(nothing_written)?;
        let rows = statement
            .query_map(params![self.id, after, last], |row| Ok((row.get(0)?, EntryId::new(row.get(1)?))))
            .map_err(nothing_written)?;
        rows.collect::<Result<_, _>>().map_err(nothing_written)
    }

    /// Returns the place of an entry; if it is missing, that of the last entry before it on its branch.
    pub(crate) fn place(&self, connection: &Connection, seq: u64) -> Result<Option<Place>> {
        let mut statement = connection
            .prepare_cached(
                "SELECT turn, turn_from, open FROM entries WHERE conversation = ?1 AND seq BETWEEN ?2 AND ?3
                 ORDER BY seq DESC LIMIT 1",
            )
            .map_err(nothing_written)?;
        let mut last = seq;
        while last > 0 {
            let segment = self.segment(connection, last)?;
            let place = statement.query_row(params![self.id, segment.first, last], Place::from_row);
            if let Some(place) = place.optional().map_err(nothing_written)? {
                return Ok(Some(place));
            }
            last = segment.parent.map_or(0, EntryId::as_u64);
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
                Some(parent) if segment.first == first => parent.as_u64(),
                _ => first.saturating_sub(1),
            };
        }
        Ok(first)
    }
}
