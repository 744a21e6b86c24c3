//! Entries as columns, and columns as entries.

use advisor_core::TurnId;
use chat_memory_advisor::{
    Batch, Entry, EntryId, EntryKind, Forks, LogReader, NewEntry, OpenTurn, Segment, Snapshot, StoreError,
    Version,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::failure::{lasting, of_statement};

/// The entries of a batch, column by column.
pub(crate) struct Columns {
    pub(crate) turns: Vec<String>,
    pub(crate) bodies: Vec<String>,
    /// Whether the turn is open after the entry; `None` if that is as it was before the batch.
    pub(crate) opens: Vec<Option<bool>>,
    /// The place in the batch of the entry with which the turn begins, 1 also if it goes on with the one before.
    pub(crate) begins: Vec<i64>,
}

impl Columns {
    /// The columns of a batch of at most so many bytes.
    pub(crate) fn of(batch: &Batch, most_bytes: usize) -> Result<Self, StoreError> {
        let mut columns =
            Self { turns: Vec::new(), bodies: Vec::new(), opens: Vec::new(), begins: Vec::new() };
        let mut bytes = 0_usize;
        for NewEntry { turn, kind, .. } in &batch.entries {
            let body = serde_json::to_string(kind).map_err(lasting)?;
            bytes = bytes.saturating_add(body.len()).saturating_add(turn.as_str().len());
            if bytes > most_bytes {
                return Err(StoreError::TooLarge);
            }
            columns.push(turn.as_str(), body, kind);
        }
        Ok(columns)
    }

    fn push(&mut self, turn: &str, body: String, kind: &EntryKind) {
        let goes_on = self.turns.last().is_none_or(|last| last == turn);
        let before = self.opens.last().copied().flatten();
        self.opens.push(match kind {
            EntryKind::Message(_) => Some(true),
            EntryKind::TurnEnded(_) => Some(false),
            _ if goes_on => before,
            _ => Some(true),
        });
        let place = i64::try_from(self.turns.len()).map_or(i64::MAX, |before| before.saturating_add(1));
        let begins = self.begins.last().copied().filter(|_| goes_on).unwrap_or(place);
        self.begins.push(begins);
        self.turns.push(turn.into());
        self.bodies.push(body);
    }

    /// Whether these entries stand in the store. Another version may have written the same in other words; one
    /// that is damaged is taken for what was written under the key.
    fn stand_in(&self, batch: &Batch, turns: &[String], bodies: &[String]) -> bool {
        let same_turn = |written: &String, turn: &String| written == turn || TurnId::new(written).is_err();
        let same_body = |written: &String, body: &String, entry: &NewEntry| {
            written == body
                || serde_json::from_str::<EntryKind>(written).map_or(true, |kind| kind == entry.kind)
        };
        turns.len() == self.turns.len()
            && turns.iter().zip(&self.turns).all(|(written, turn)| same_turn(written, turn))
            && bodies
                .iter()
                .zip(&self.bodies)
                .zip(&batch.entries)
                .all(|((old, new), entry)| same_body(old, new, entry))
    }
}

/// What an append came to, by the row that the server answers with.
pub(crate) fn outcome(row: &Row, batch: &Batch, columns: &Columns) -> Result<Version, StoreError> {
    match column::<&str>(row, "outcome")? {
        "gone" => return Err(StoreError::Gone),
        "fenced" => return Err(StoreError::Fenced),
        "no_parent" => {
            return Err(StoreError::NoSuchEntry { id: batch.parent.unwrap_or(EntryId::BEGINNING) });
        }
        _ => {}
    }
    let version = Version::new(number(row, "at_version")?);
    match column::<&str>(row, "outcome")? {
        "written" => Ok(version),
        "conflict" => Err(StoreError::Conflict { current: version }),
        "known" => {
            let turns: Vec<String> = column(row, "known_turns")?;
            let bodies: Vec<String> = column(row, "known_bodies")?;
            let before = number(row, "known_first")?.saturating_sub(1);
            let parent = batch.parent.filter(|parent| parent.as_u64() != before);
            let same = columns.stand_in(batch, &turns, &bodies)
                && (batch.entries.is_empty() || entry_id(row, "known_parent")? == parent);
            if same { Ok(version) } else { Err(StoreError::KeyReused) }
        }
        _ => Err(StoreError::outcome_unknown("the server answers as no known version of the schema does")),
    }
}

/// The snapshot of the branch to `tip`, or of the last one, by the rows of one statement: a head and the entries.
/// Without rows there is no conversation.
pub(crate) fn snapshot(rows: &[Row], tip: Option<EntryId>) -> Result<Snapshot, StoreError> {
    let version = rows.first().map_or(Ok(0), |head| number(head, "version"))?;
    if let Some(id) = tip.filter(|tip| tip.as_u64() > version) {
        return Err(StoreError::NoSuchEntry { id });
    }
    let Some((head, rows)) = rows.split_first() else { return Ok(Snapshot::default()) };
    let mut entries = entries(rows, segments(head)?)?;
    let mut snapshot = Snapshot::default();
    snapshot.version = Version::new(version);
    let turn_from = number(head, "turn_from")?;
    let turn = entries.get(entries.partition_point(|entry| entry.seq < turn_from)..).unwrap_or_default();
    snapshot.open_turn = if column(head, "open")? { OpenTurn::all_of(turn) } else { None };
    let view_from = number(head, "view_from")?;
    let before = entries.partition_point(|entry| entry.seq < view_from);
    snapshot.entries = entries.split_off(before);
    Ok(snapshot)
}

/// The entries after one up to another, by the rows of one statement.
pub(crate) fn range(rows: &[Row], after: i64, last: i64) -> Result<Vec<Entry>, StoreError> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let unsigned = |number: i64| u64::try_from(number).map_err(StoreError::outcome_unknown);
    let last = unsigned(last)?.min(number(first, "version")?);
    let (rows, forked) = rows.split_at(rows.partition_point(|row| row.try_get::<_, i64>("seq").is_ok()));
    entries(rows, forks(forked)?.range(unsigned(after)?, last))
}

/// The tips of all branches, by the rows of one statement.
pub(crate) fn tips(rows: &[Row]) -> Result<Vec<EntryId>, StoreError> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    Ok(forks(rows)?.tips(number(first, "version")?))
}

/// The forks of those rows that have one.
fn forks(rows: &[Row]) -> Result<Forks, StoreError> {
    let fork = |row| match entry_id(row, "parent") {
        Ok(Some(parent)) => Some(number(row, "first_seq").map(|first| (first, parent))),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    };
    rows.iter().filter_map(fork).collect()
}

/// The value of a column. One that cannot be read leaves open what the statement did; a load knows better.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, StoreError> {
    row.try_get(name).map_err(of_statement)
}

pub(crate) fn number(row: &Row, name: &str) -> Result<u64, StoreError> {
    u64::try_from(column::<i64>(row, name)?).map_err(StoreError::outcome_unknown)
}

fn entry_id(row: &Row, name: &str) -> Result<Option<EntryId>, StoreError> {
    let id = column::<Option<i64>>(row, name)?.map(u64::try_from).transpose();
    Ok(id.map_err(StoreError::outcome_unknown)?.map(EntryId::new))
}

/// Of which segments the entries of a head are.
fn segments(head: &Row) -> Result<Vec<Segment>, StoreError> {
    let numbers = |name| column::<Option<Vec<Option<i64>>>>(head, name).map(Option::unwrap_or_default);
    let (firsts, lasts, parents) = (numbers("firsts")?, numbers("lasts")?, numbers("parents")?);
    let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let segments = firsts.into_iter().zip(lasts).zip(parents).filter_map(|((first, last), parent)| {
        Some(Segment::new(unsigned(first)?, unsigned(last)?, unsigned(parent).map(EntryId::new)))
    });
    Ok(segments.collect())
}

/// The entries of these segments, by their rows.
fn entries(rows: &[Row], segments: Vec<Segment>) -> Result<Vec<Entry>, StoreError> {
    let mut log = LogReader::new(segments);
    for row in rows {
        let (turn, body): (&str, &str) = (column(row, "turn")?, column(row, "body")?);
        log.row(number(row, "seq")?, turn.as_bytes(), body.as_bytes())?;
    }
    log.finish()
}
