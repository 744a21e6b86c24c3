//! The branches of a log: where they part, and what is on the way to a tip.

use chat_memory_advisor::{EntryId, Forks, Segment, StoreError};
use rusqlite::{Connection, OptionalExtension, Statement, params};

use crate::failure::nothing_written;
use crate::log::Log;

/// What is known of an entry without reading what it says.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The number of its turn on its branch.
    pub(crate) turn_number: u64,
    /// Whether its turn is open after it, if that was noted.
    pub(crate) open: Option<bool>,
}

impl Log {
    /// The part of the path that ends with this entry: back to where its branch begins. A seek in an index.
    pub(crate) fn segment(&self, connection: &Connection, last: u64) -> Result<Segment, StoreError> {
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

    /// The path to `tip`, from the entry `from` on; `from` stands on it, or is 1 or beyond the tip.
    pub(crate) fn path(
        &self,
        connection: &Connection,
        from: u64,
        tip: u64,
    ) -> Result<Vec<Segment>, StoreError> {
        let mut path = Vec::new();
        let mut last = tip;
        while last >= from.max(1) {
            let mut segment = self.segment(connection, last)?;
            // The table makes sure that a parent comes before what follows it.
            last = segment.parent.map_or(0, EntryId::as_u64);
            if segment.first < from {
                (segment.first, segment.parent) = (from, None);
            }
            path.push(segment);
        }
        path.reverse();
        Ok(path)
    }

    /// All forks after one entry, up to another.
    pub(crate) fn forks(&self, connection: &Connection, after: u64, last: u64) -> Result<Forks, StoreError> {
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

    /// What is known of an entry; of the last one before it on its branch, if it is missing.
    pub(crate) fn place(&self, connection: &Connection, seq: u64) -> Result<Option<Place>, StoreError> {
        let mut last = seq;
        while last > 0 {
            let segment = self.segment(connection, last)?;
            let mut statement = connection
                .prepare_cached(
                    "SELECT turn_number, open FROM entries WHERE conversation = ?1 AND seq BETWEEN ?2 AND ?3
                     ORDER BY seq DESC LIMIT 1",
                )
                .map_err(nothing_written)?;
            let place = statement.query_row(params![self.id, segment.first, last], |row| {
                Ok(Place { turn_number: row.get(0)?, open: row.get(1)? })
            });
            if let Some(place) = place.optional().map_err(nothing_written)? {
                return Ok(Some(place));
            }
            last = segment.parent.map_or(0, EntryId::as_u64);
        }
        Ok(None)
    }

    /// The first entry of the turn of this number on the path to `tip`: one seek for each segment on the way.
    pub(crate) fn first_of_turn(
        &self,
        connection: &Connection,
        number: u64,
        tip: u64,
    ) -> Result<u64, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT seq FROM entries
                 WHERE conversation = ?1 AND turn_number = ?2 AND seq >= ?3 AND seq <= ?4 ORDER BY seq LIMIT 1",
            )
            .map_err(nothing_written)?;
        let (mut last, mut found) = (tip, None);
        while last > 0 {
            let segment = self.segment(connection, last)?;
            let here = self.first_between(&mut statement, number, &segment)?;
            found = here.or(found);
            // A turn may have begun before the place where its branch was cut off.
            if here.is_some_and(|here| here > segment.first) || (found.is_some() && here.is_none()) {
                break;
            }
            last = segment.parent.map_or(0, EntryId::as_u64);
        }
        Ok(found.unwrap_or(1))
    }

    fn first_between(
        &self,
        statement: &mut Statement<'_>,
        number: u64,
        segment: &Segment,
    ) -> Result<Option<u64>, StoreError> {
        let found =
            statement.query_row(params![self.id, number, segment.first, segment.last], |row| row.get(0));
        found.optional().map_err(nothing_written)
    }
}
