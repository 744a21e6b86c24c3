//! Opening a database: how its connections are set, and how its schema came to be.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::OpenError;

/// Marks the file as one of this crate's (`cmsq`).
const APPLICATION: u32 = 0x636D_7371;

/// How long a connection waits for a lock that another process holds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The step from each version of the schema to the next; `user_version` counts those that were taken.
/// A step that was released is never changed.
const MIGRATIONS: [&str; 2] = [
    // `turn_number` counts the turns of a conversation, so that its last turns are found by the index
    // without reading others. The rows have rowids, since those of messages are long.
    "CREATE TABLE conversations (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        conversation TEXT NOT NULL,
        version INTEGER NOT NULL CHECK (version >= 0),
        fence INTEGER,
        UNIQUE (tenant, conversation)
    ) STRICT;
    CREATE TABLE entries (
        conversation INTEGER NOT NULL,
        seq INTEGER NOT NULL CHECK (seq > 0),
        turn_number INTEGER NOT NULL,
        turn TEXT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (conversation, seq)
    ) STRICT;
    CREATE INDEX entries_by_turn ON entries (conversation, turn_number, seq);
    CREATE TABLE batches (
        conversation INTEGER NOT NULL,
        turn TEXT NOT NULL,
        round INTEGER NOT NULL,
        step TEXT NOT NULL,
        before INTEGER NOT NULL,
        after INTEGER NOT NULL,
        PRIMARY KEY (conversation, turn, round, step)
    ) STRICT, WITHOUT ROWID;",
    // A fork is an entry that does not follow the one before it. From here on, `turn_number` counts the turns
    // of the branch. `open` tells whether the turn is open after the entry; it is null where an older version
    // wrote it.
    "CREATE TABLE forks (
        conversation INTEGER NOT NULL,
        first INTEGER NOT NULL CHECK (first > 0),
        parent INTEGER NOT NULL CHECK (parent >= 0 AND parent < first),
        PRIMARY KEY (conversation, first)
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE entries ADD COLUMN open INTEGER;",
];

/// The newest version of the schema that is known.
const KNOWN: u32 = MIGRATIONS.len() as u32;

/// A connection that writes, to a file whose schema is up to date.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    let mut connection = connect(path)?;
    // A file that is refused is left as it is.
    version(&connection.transaction()?)?;
    write_ahead(&connection)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// A connection that only reads, to a file that a writer has opened.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A database in this process's memory, which ends with its connection.
pub(crate) fn in_memory() -> Result<Connection, OpenError> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, OpenError> {
    // Without the flag for URIs, which would give a meaning to paths that begin with `file:`.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // A commit is acknowledged when the disk has it; where `fsync` does not go that far, more is asked for.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

/// Makes the journal a write-ahead log. Of several who do that to a new file at once, SQLite turns some
/// away without waiting; those wait for the lock, and try again.
fn write_ahead(connection: &Connection) -> Result<(), OpenError> {
    let begun = Instant::now();
    loop {
        let set = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        match set.map_err(OpenError::from) {
            Ok(journal) if journal == "wal" => return Ok(()),
            Ok(journal) => return Err(OpenError::NoWriteAheadLog { journal }),
            Err(OpenError::Busy) if begun.elapsed() < PATIENCE => {
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The version of the schema, 0 for an empty database, if it is one that this crate can work with.
///
/// Read in one transaction, since another process may be making the tables.
fn version(transaction: &Transaction<'_>) -> Result<u32, OpenError> {
    let read = |pragma| transaction.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
    let (application, found) = (read("application_id")?, read("user_version")?);
    let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match application {
        APPLICATION if found > KNOWN => Err(OpenError::NewerSchema { found, known: KNOWN }),
        APPLICATION => Ok(found),
        0 if found == 0 && tables == 0 => Ok(0),
        _ => Err(OpenError::NotAStore),
    }
}

/// Takes the steps that are missing, all or none, and one process after the other.
fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    if version(&connection.transaction()?)? == KNOWN {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_for_the_disk_and_a_reader_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sqlite");
        let (writer, reader) = (writer(&path).unwrap(), reader(&path).unwrap());
        let pragma = |pragma| writer.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((pragma("synchronous"), pragma("fullfsync"), pragma("checkpoint_fullfsync")), (2, 1, 1));
        let journal: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(journal, "wal");
        assert!(reader.execute("DELETE FROM entries", []).is_err());
    }

    #[test]
    fn a_schema_is_made_once() {
        let mut connection = in_memory().unwrap();
        let steps = |connection: &Connection| {
            connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, u32>(0)).unwrap()
        };
        let made = steps(&connection);
        migrate(&mut connection).unwrap();
        assert_eq!((steps(&connection), version(&connection.transaction().unwrap()).unwrap()), (made, KNOWN));
    }
}
