//! Conversion between entries and columns.

use conversation_store::{
    Admission, AppliedBatch, Batch, BranchIndex, Entry, EntryId, FencingToken, LogReader, LogState, Result,
    Segment, Snapshot, StoreError, TurnEffect, Version, WrittenEntry, admit,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::failure::{from_statement, lasting};

/// The columns of a batch's entries.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    pub(crate) turns: Vec<&'a str>,
    pub(crate) bodies: Vec<&'a str>,
    /// Whether the turn is open after the entry; null in the column if that does not change with the batch.
    pub(crate) opens: Vec<Option<bool>>,
    /// The position in the batch of the first entry of the entry's turn. It is 1 also if the turn began before the
    /// batch.
    pub(crate) begins: Vec<i64>,
}

impl<'a> Columns<'a> {
    pub(crate) fn from_entries(entries: &'a [WrittenEntry<'_>]) -> Self {
        let mut columns = Self::default();
        for (place, entry) in (1..).zip(entries) {
            let goes_on = columns.turns.last().is_none_or(|last| *last == entry.turn);
            let before = if goes_on { columns.opens.last().copied().flatten() } else { Some(true) };
            columns.opens.push(match entry.effect {
                TurnEffect::Opens => Some(true),
                TurnEffect::Ends => Some(false),
                TurnEffect::Unchanged => before,
            });
            columns.begins.push(columns.begins.last().copied().filter(|_| goes_on).unwrap_or(place));
            columns.turns.push(entry.turn);
            columns.bodies.push(&entry.body);
        }
        columns
    }
}

/// Returns the result of an append by the row that the server returned: the version, or what the server has in place
/// of it.
pub(crate) fn outcome(
    row: &Row,
    expected: Version,
    batch: &Batch,
    entries: &[WrittenEntry<'_>],
) -> Result<Version> {
    let version = Version(number(row, "at_version")?);
    if column(row, "is_written")? {
        return Ok(version);
    }
    let token: Option<i64> = column(row, "at_fence")?;
    let state = LogState {
        version,
        token: token.map(|token| FencingToken(token.cast_unsigned())),
        last_turn: column::<Option<&str>>(row, "at_turn")?.unwrap_or_default().as_bytes(),
        applied: applied(row, entries)?,
    };
    match admit(&state, expected, batch)? {
        Admission::Done(version) => Ok(version),
        Admission::Write => Err(lasting("the server did not write a batch that it had to write")),
    }
}

/// Returns the batch that was applied under the key of the new one, compared with its entries.
fn applied(row: &Row, entries: &[WrittenEntry<'_>]) -> Result<Option<AppliedBatch>> {
    if column::<Option<i64>>(row, "known_first")?.is_none() {
        return Ok(None);
    }
    let turns: Vec<&str> = column(row, "known_turns")?;
    let bodies: Vec<&str> = column(row, "known_bodies")?;
    let mut standing = turns.iter().zip(&bodies).zip(entries);
    Ok(Some(AppliedBatch {
        before: Version(number(row, "known_first")?.saturating_sub(1)),
        after: Version(number(row, "known_last")?),
        parent: entry_id(row, "known_parent")?,
        same_entries: turns.len() == entries.len()
            && standing.all(|((turn, body), new)| new.matches_row(turn.as_bytes(), body.as_bytes())),
    }))
}

/// Builds the snapshot of the branch that ends with `tip`, or of the last one. The rows of one statement are a head and
/// the entries. Without rows, the conversation does not exist.
pub(crate) fn snapshot(rows: &[Row], tip: Option<EntryId>) -> Result<Snapshot> {
    let version = rows.first().map_or(Ok(0), |head| number(head, "version"))?;
    if let Some(id) = tip.filter(|tip| tip.0 > version) {
        return Err(StoreError::NoSuchEntry { id });
    }
    let Some((head, rows)) = rows.split_first() else { return Ok(Snapshot::default()) };
    let entries = entries(rows, segments(head)?)?;
    let (range_from, turn_from) = (number(head, "view_from")?, number(head, "turn_from")?);
    let open_from = column::<bool>(head, "open")?.then_some(turn_from);
    Ok(Snapshot::from_read(Version(version), entries, range_from, open_from))
}

/// Builds the entries after one number up to another from the rows of one statement.
pub(crate) fn range(rows: &[Row], after: u64, last: u64) -> Result<Vec<Entry>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let last = last.min(number(first, "version")?);
    let (rows, forked) = rows.split_at(rows.partition_point(|row| row.try_get::<_, i64>("seq").is_ok()));
    entries(rows, forks(forked)?.range(after, last))
}

/// Returns the last entries of all branches, from the rows of one statement.
pub(crate) fn tips(rows: &[Row]) -> Result<Vec<EntryId>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    Ok(forks(rows)?.tips(number(first, "version")?))
}

/// Returns the forks of the rows that have one.
fn forks(rows: &[Row]) -> Result<BranchIndex> {
    let fork = |row| match entry_id(row, "parent") {
        Ok(Some(parent)) => Some(number(row, "first_seq").map(|first| (first, parent))),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    };
    rows.iter().filter_map(fork).collect()
}

/// Returns the value of a column. If it cannot be read, the outcome of a write is unknown; a load replaces that
/// error.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T> {
    row.try_get(name).map_err(from_statement)
}

pub(crate) fn number(row: &Row, name: &str) -> Result<u64> {
    u64::try_from(column::<i64>(row, name)?).map_err(StoreError::outcome_unknown)
}

fn entry_id(row: &Row, name: &str) -> Result<Option<EntryId>> {
    let id = column::<Option<i64>>(row, name)?.map(u64::try_from).transpose();
    Ok(id.map_err(StoreError::outcome_unknown)?.map(EntryId))
}

/// Returns the segments that a head lists.
fn segments(head: &Row) -> Result<Vec<Segment>> {
    let numbers = |name| column::<Option<Vec<Option<i64>>>>(head, name).map(Option::unwrap_or_default);
    let (firsts, lasts, parents) = (numbers("firsts")?, numbers("lasts")?, numbers("parents")?);
    let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let segments = firsts.into_iter().zip(lasts).zip(parents).filter_map(|((first, last), parent)| {
        let (first, last, parent) = (unsigned(first)?, unsigned(last)?, unsigned(parent).map(EntryId));
        Some(Segment { first, last, parent })
    });
    Ok(segments.collect())
}

/// Builds the entries of these segments from their rows.
fn entries(rows: &[Row], segments: Vec<Segment>) -> Result<Vec<Entry>> {
    let mut log = LogReader::new(segments);
    for row in rows {
        let (turn, body): (&str, &str) = (column(row, "turn")?, column(row, "body")?);
        log.row(number(row, "seq")?, turn.as_bytes(), body.as_bytes())?;
    }
    log.finish()
}
