//! The file of a store: settings of its connections, migrations of its schema, why it cannot be opened
//! (`OpenError`), and whether it was replaced while it was open (`FileReplaced`).

use std::fs::{Metadata, metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use advisor_core::{BoxError, Error, ErrorKind};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

/// The application id that marks a file of this crate (`cms1`). Files with `cmsq` are of layouts before the first
/// release.
const APPLICATION: u32 = 0x636D_7331;

/// The maximum wait for a lock that another process holds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The migrations from each version of the schema to the next; `user_version` counts the applied ones. A released
/// migration never changes.
const MIGRATIONS: &[&str] = &[
    // `turn`, `turn_from` and `open` of a conversation are those of its last entry, so that an append reads no
    // entry. `turn_from` is the first entry of the turn on its branch. It lets a load find the last turns with one
    // lookup per turn, without an index that each append would have to update. `open` records whether the turn is
    // open after the entry. A fork is an entry that does not follow the one before it. Entries keep their rowids
    // because message rows are long. `sum` is a checksum of the row, which detects a page that was changed without
    // SQLite. `fences` has the highest fencing tokens of deleted conversations.
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
        sum INTEGER NOT NULL,
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
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE fences (
        tenant TEXT NOT NULL,
        conversation TEXT NOT NULL,
        fence INTEGER NOT NULL,
        PRIMARY KEY (tenant, conversation)
    ) STRICT, WITHOUT ROWID;",
];

/// The newest version of the schema that this crate knows.
const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Opens a writing connection to a file and brings its schema up to date.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    create_private(path);
    let mut connection = connect(path)?;
    // A file that is refused stays unchanged.
    version(&connection.transaction()?)?;
    check(&connection)?;
    write_ahead(&connection)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// The links that lead to a file. Linux follows no more.
const MOST_LINKS: usize = 40;

/// Creates a file that, on Unix, only its owner can read and write, if there is none. SQLite gives its further files the
/// same permissions.
///
/// SQLite reports why a file cannot be created. A file that exists is not opened here: closing it would release the
/// locks of other connections of this process.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Links may lead to where no file is yet. To create a new file alone follows none of them.
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(to) = std::fs::read_link(&target) else { break };
        target = target.with_file_name("").join(to);
    }
    drop(options.open(target));
}

/// Checks the whole file for damage, up to the first finding. `quick_check` skips the indexes, and a lost
/// index entry hides a conversation.
fn check(connection: &Connection) -> Result<(), OpenError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Damaged(found.into())) }
}

/// Opens a read-only connection to a file that a writer has opened.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Creates a database in memory, which ends with its connection.
pub(crate) fn in_memory() -> Result<Connection, OpenError> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, OpenError> {
    // The URI flag is left out, since it would give paths that start with `file:` a special meaning.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // A commit is acknowledged once the disk has it. On systems where `fsync` is not enough, a full sync is
    // requested.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

/// Sets the journal to a write-ahead log. If several processes do so on a new file at once, SQLite refuses some
/// without waiting. Those wait for the lock and retry.
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

/// Returns the version of the schema, 0 for an empty database. Fails if this crate cannot use the file.
///
/// The values are read in one transaction, since another process may be creating the tables.
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

/// Applies the missing migrations, all or none, in one process at a time.
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

/// The reason why a store could not be opened. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer version of this crate has written the file.
    #[error(
        "the file has version {found} of the store's schema, and this program knows versions up to {known}; \
         update the program or open another file"
    )]
    NewerSchema {
        /// The version of the file's schema.
        found: u32,
        /// The newest version that this crate knows.
        known: u32,
    },
    /// The file is no database, the database of another application, or one from before the first release.
    #[error("the file exists and is no store of conversations that this program knows; choose another path")]
    NotAStore,
    /// The file is damaged: another program has written to it, or the disk has lost data.
    #[error(
        "the file is damaged; keep a copy of it, and continue with a backup, or with the output of `sqlite3 FILE .recover`"
    )]
    Damaged(#[source] BoxError),
    /// The file cannot be opened, created or written.
    #[error("the file cannot be opened; see that its folder exists and that both can be written")]
    Unreachable(#[source] BoxError),
    /// Another process kept the file locked for longer than this store waits.
    #[error("another process keeps the file locked; try again later")]
    Busy,
    /// The file system lacks features that several processes on one file need.
    #[error(
        "the file's journal cannot be a write-ahead log but is `{journal}`; choose a path on a local disk"
    )]
    NoWriteAheadLog {
        /// The kind of journal that the file has.
        journal: String,
    },
    /// No tokio runtime is running.
    #[error("a store works off the async threads; open it within a tokio runtime")]
    NoRuntime,
    /// SQLite failed for another reason.
    #[error("the database cannot be used; the error's source has the reason")]
    Sqlite(#[source] BoxError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStore,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(error.into()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unreachable(error.into())
            }
            _ => Self::Sqlite(error.into()),
        }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}

/// A file of the store was deleted or replaced while the store was open: the database, or the `-wal` or `-shm` file
/// beside it.
///
/// It is the source of the errors of such a store's writes, which [`SqliteStore`](crate::SqliteStore) refuses. Its
/// reads still show what it has.
#[derive(Debug, thiserror::Error)]
#[error(
    "a file of the store was deleted or replaced while it was open; export what it still shows, then open the store \
     again"
)]
#[non_exhaustive]
pub struct FileReplaced;

/// The files of an open database: each at its path, with its identity.
#[derive(Debug)]
pub(crate) struct OpenFiles(Vec<(PathBuf, Identity)>);

/// What tells one file from another. Where the system offers none, a file is only known to exist.
type Identity = Option<(u64, u64)>;

impl OpenFiles {
    /// Notes the files of the database at `path`. It must be open: then SQLite keeps the two beside it.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        // SQLite puts the other files beside the one that a link leads to.
        let database = path.canonicalize()?;
        let beside = ["-wal", "-shm"].map(|ending| {
            let mut name = database.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        });
        let noted = |path: PathBuf| metadata(&path).map(|found| (path, identity(&found)));
        [path.to_path_buf()].into_iter().chain(beside).map(noted).collect::<io::Result<_>>().map(Self)
    }

    /// Checks that each file is still at its path. Costs three look-ups in the file system.
    pub(crate) fn check(&self) -> Result<(), FileReplaced> {
        let stands = |(path, noted): &(PathBuf, Identity)| {
            metadata(path).is_ok_and(|found| identity(&found) == *noted)
        };
        if self.0.iter().all(stands) { Ok(()) } else { Err(FileReplaced) }
    }
}

/// While a file is open, no other one gets its number.
#[cfg(unix)]
fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

/// On Windows, an open database can be neither deleted nor replaced.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_syncs_to_disk_and_reader_cannot_write() {
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
        let made = |connection: &Connection| {
            connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, u32>(0)).unwrap()
        };
        let before = made(&connection);
        migrate(&mut connection).unwrap();
        assert_eq!(made(&connection), before);
    }

    #[test]
    fn error_of_a_service_keeps_the_advice() {
        let error = Error::from(OpenError::NotAStore);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Store, OpenError::NotAStore.to_string()));
    }
}
