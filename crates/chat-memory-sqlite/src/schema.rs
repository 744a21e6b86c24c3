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
const MIGRATIONS: &[&str] = &[
    // `turn`, `turn_from` and `open` of a conversation are those of its last entry, so that an append reads no
    // entry. `turn_from` is the entry at which the turn begins on its branch: the last turns are found by as many
    // looks, without an index that each append would have to write. `open` tells whether the turn is open after
    // the entry. A fork is an entry that does not follow the one before it. The rows of entries have rowids,
    // since those of messages are long, and what is said stands last in them.
    "CREATE TABLE conversations (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        conversation TEXT NOT NULL,
        version INTEGER NOT NULL CHECK (version >= 0),
        fence INTEGER,
        turn TEXT NOT NULL,
        turn_from INTEGER NOT NULL,
        open INTEGER NOT NULL,
        UNIQUE (tenant, conversation)
    ) STRICT;
    CREATE TABLE entries (
        conversation INTEGER NOT NULL,
        seq INTEGER NOT NULL CHECK (seq > 0),
        turn_from INTEGER NOT NULL CHECK (turn_from > 0 AND turn_from <= seq),
        open INTEGER NOT NULL,
        turn TEXT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (conversation, seq)
    ) STRICT;
    CREATE TABLE forks (
        conversation INTEGER NOT NULL,
        first INTEGER NOT NULL CHECK (first > 0),
        parent INTEGER NOT NULL CHECK (parent >= 0 AND parent < first),
        PRIMARY KEY (conversation, first)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE batches (
        conversation INTEGER NOT NULL,
        turn TEXT NOT NULL,
        round INTEGER NOT NULL,
        step TEXT NOT NULL,
        before INTEGER NOT NULL,
        after INTEGER NOT NULL,
        PRIMARY KEY (conversation, turn, round, step)
    ) STRICT, WITHOUT ROWID;",
    // A sum of each row, by which a page that was changed behind SQLite's back is noticed. Rows that were written
    // before have none.
    "ALTER TABLE entries ADD COLUMN sum INTEGER;",
];

/// The newest version of the schema that is known.
const KNOWN: u32 = MIGRATIONS.len() as u32;

/// A connection that writes, to a file whose schema is up to date.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    let mut connection = connect(path)?;
    // A file that is refused is left as it is.
    version(&connection.transaction()?, KNOWN)?;
    check(&connection)?;
    write_ahead(&connection)?;
    migrate(&mut connection, MIGRATIONS)?;
    Ok(connection)
}

/// Looks for damage in the whole file, and stops at the first.
fn check(connection: &Connection) -> Result<(), OpenError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Damaged(found.into())) }
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
    migrate(&mut connection, MIGRATIONS)?;
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
fn version(transaction: &Transaction<'_>, known: u32) -> Result<u32, OpenError> {
    let read = |pragma| transaction.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
    let (application, found) = (read("application_id")?, read("user_version")?);
    let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match application {
        APPLICATION if found > known => Err(OpenError::NewerSchema { found, known }),
        APPLICATION => Ok(found),
        0 if found == 0 && tables == 0 => Ok(0),
        _ => Err(OpenError::NotAStore),
    }
}

/// Takes those of the steps that are missing, all or none, and one process after the other.
fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), OpenError> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if version(&connection.transaction()?, known)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction, known)?;
    for step in steps.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", known)?;
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

    fn steps_taken(connection: &mut Connection, known: u32) -> (u32, u32) {
        let changes = connection.query_row("PRAGMA schema_version", [], |row| row.get(0)).unwrap();
        (changes, version(&connection.transaction().unwrap(), known).unwrap())
    }

    #[test]
    fn a_schema_is_made_once() {
        let mut connection = in_memory().unwrap();
        let (made, _) = steps_taken(&mut connection, KNOWN);
        migrate(&mut connection, MIGRATIONS).unwrap();
        assert_eq!(steps_taken(&mut connection, KNOWN), (made, KNOWN));
    }

    #[test]
    fn a_file_of_an_older_version_takes_the_steps_that_it_lacks_all_or_none() {
        let mut connection = in_memory().unwrap();
        connection.execute("INSERT INTO forks VALUES (1, 2, 1)", []).unwrap();
        let made = steps_taken(&mut connection, KNOWN);
        let newer = [MIGRATIONS, &["ALTER TABLE forks ADD COLUMN note TEXT"]].concat();
        migrate(&mut connection, &[&newer[..], &["no SQL"]].concat()).unwrap_err();
        assert_eq!(steps_taken(&mut connection, KNOWN), made);
        migrate(&mut connection, &newer).unwrap();
        assert_eq!(steps_taken(&mut connection, KNOWN + 1).1, KNOWN + 1);
        let kept = "SELECT parent FROM forks WHERE note IS NULL";
        assert_eq!(connection.query_row(kept, [], |row| row.get::<_, i64>(0)), Ok(1));
        let refused = migrate(&mut connection, MIGRATIONS).unwrap_err();
        assert!(matches!(refused, OpenError::NewerSchema { known: KNOWN, .. }), "{refused:?}");
    }
}
