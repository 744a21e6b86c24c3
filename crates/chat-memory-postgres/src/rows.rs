//! Entries as columns, and columns as entries.

use advisor_core::TurnId;
use chat_memory_advisor::{Batch, Entry, EntryKind, NewEntry, OpenTurn, Snapshot, StoreError, Version};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::failure::{lasting, of_statement};

/// The entries of a batch, column by column.
pub(crate) struct Columns {
    pub(crate) turns: Vec<String>,
    pub(crate) bodies: Vec<String>,
    /// Whether the turn is open after the entry; `None` leaves it as it was.
    pub(crate) opens: Vec<Option<bool>>,
}

impl Columns {
    /// The columns of a batch of at most so many bytes.
    pub(crate) fn of(batch: &Batch, most_bytes: usize) -> Result<Self, StoreError> {
        let mut columns = Self { turns: Vec::new(), bodies: Vec::new(), opens: Vec::new() };
        let mut bytes = 0_usize;
        for NewEntry { turn, kind, .. } in &batch.entries {
            let body = serde_json::to_string(kind).map_err(lasting)?;
            bytes = bytes.saturating_add(body.len()).saturating_add(turn.as_str().len());
            if bytes > most_bytes {
                return Err(StoreError::TooLarge);
            }
            columns.turns.push(turn.as_str().into());
            columns.bodies.push(body);
            columns.opens.push(match kind {
                EntryKind::Message(_) => Some(true),
                EntryKind::TurnEnded(_) => Some(false),
                _ => None,
            });
        }
        Ok(columns)
    }

    /// Whether these entries stand in the store. Another version may have written the same in other words.
    fn stand_in(&self, batch: &Batch, turns: &[String], bodies: &[String]) -> bool {
        let same = |((written, body), entry): ((&String, &String), &NewEntry)| {
            written == body || serde_json::from_str::<EntryKind>(written).is_ok_and(|kind| kind == entry.kind)
        };
        turns == self.turns && bodies.iter().zip(&self.bodies).zip(&batch.entries).all(same)
    }
}

/// What an append came to, by the row that the server answers with.
pub(crate) fn outcome(row: &Row, batch: &Batch, columns: &Columns) -> Result<Version, StoreError> {
    match column::<&str>(row, "outcome")? {
        "gone" => return Err(StoreError::Gone),
        "fenced" => return Err(StoreError::Fenced),
        _ => {}
    }
    let version = Version::new(number(row, "at_version")?);
    match column::<&str>(row, "outcome")? {
        "written" => Ok(version),
        "conflict" => Err(StoreError::Conflict { current: version }),
        "known" => {
            let turns: Vec<String> = column(row, "known_turns")?;
            let bodies: Vec<String> = column(row, "known_bodies")?;
            if columns.stand_in(batch, &turns, &bodies) { Ok(version) } else { Err(StoreError::KeyReused) }
        }
        _ => Err(StoreError::outcome_unknown("the server answers as no known version of the schema does")),
    }
}

/// The snapshot of a conversation, by the rows of one statement; without rows there is none.
pub(crate) fn snapshot(rows: &[Row]) -> Result<Snapshot, StoreError> {
    let Some(first) = rows.first() else { return Ok(Snapshot::default()) };
    let mut entries = rows.iter().filter_map(|row| entry(row).transpose()).collect::<Result<Vec<_>, _>>()?;
    let mut snapshot = Snapshot::default();
    snapshot.version = Version::new(number(first, "version")?);
    if column::<bool>(first, "open")? {
        let turn_from = number(first, "last_turn_from")?;
        let before = entries.partition_point(|entry| entry.seq < turn_from);
        snapshot.open_turn = OpenTurn::of(entries.get(before..).unwrap_or_default());
    }
    let view_from = column::<i64>(first, "from_seq")?;
    let before = entries.partition_point(|entry| i64::try_from(entry.seq).is_ok_and(|seq| seq < view_from));
    snapshot.entries = entries.split_off(before);
    Ok(snapshot)
}

/// The value of a column. One that cannot be read leaves open what the statement did; a load knows better.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, StoreError> {
    row.try_get(name).map_err(of_statement)
}

pub(crate) fn number(row: &Row, name: &str) -> Result<u64, StoreError> {
    u64::try_from(column::<i64>(row, name)?).map_err(StoreError::outcome_unknown)
}

/// The entry of a row, if it has one.
fn entry(row: &Row) -> Result<Option<Entry>, StoreError> {
    let Some(seq) = column::<Option<i64>>(row, "seq")? else { return Ok(None) };
    let seq = u64::try_from(seq).map_err(StoreError::outcome_unknown)?;
    // What a parser says may quote the conversation, so it is not passed on.
    let corrupt = |what: &str| StoreError::Corrupt { seq, source: Some(what.into()) };
    let turn = TurnId::new(column(row, "turn")?).map_err(|_| corrupt("its turn has no valid id"))?;
    let kind =
        serde_json::from_str(column(row, "body")?).map_err(|_| corrupt("its body is not one of an entry"))?;
    Ok(Some(Entry::new(seq, turn, kind)))
}
