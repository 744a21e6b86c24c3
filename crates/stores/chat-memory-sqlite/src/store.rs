//! `SqliteStore`: opening, closing, the batch limit, and each store operation sent to the right connection queue.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use advisor_core::{BoxError, ConversationKey, async_trait};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, Page, ReadRange, Result, Snapshot, StoreError, Version,
};
use rusqlite::Connection;
use tokio::runtime::Handle;

use crate::connection_queue::ConnectionQueue;
use crate::failure::{Failure, lasting};
use crate::file::{self, OpenFiles};
use crate::{OpenError, append, conversations, load};

/// The maximum number of concurrent loads and lists.
const READERS: usize = 4;

/// A store of conversations in one SQLite file. Clones share its connections; other stores and other processes may
/// open the same file.
///
/// An acknowledged write is on the disk. It survives a crash of the process, and of the machine if the disk keeps
/// confirmed writes. While the file is open, SQLite keeps two more files beside it, `-wal` and `-shm`. They belong
/// to it, and all three must be on a local disk.
///
/// Before a write is acknowledged, the store looks whether all three are still at their paths. If one was deleted or
/// replaced, it refuses this write and all later ones, so that nothing is written which the next process does not
/// find.
///
/// It keeps every conversation, and the key of each batch, until it is deleted. Fencing tokens are checked, and
/// outlive a deletion.
///
/// # Damage
/// SQLite relies on the disk, and on other programs, to leave its files as they are. No setting changes that. Keep backups
/// on another disk.
///
/// | damage | consequence |
/// | --- | --- |
/// | pages of an open file are overwritten | an append soon after may be acknowledged and lost. A later one, a load or the next opening reports the damage |
/// | the `-wal` file is damaged, and the file is opened again | the latest appends are lost without an error, up to about 4 MB: those that no checkpoint had moved into the file |
/// | pages of a closed file are overwritten | [`open`](Self::open) refuses the file, if it finds the damage |
/// | bytes inside an entry change | the entry is returned as damaged in its place |
///
/// # Ordering
/// As in the contract of [`ConversationStore`]. A store runs one append at a time, in the order of the requests.
/// Several stores on one file wait for one another for up to five seconds. Readers wait for no writer.
///
/// # Cancellation
/// An append that is dropped while it waits in the queue is not applied. One that has started continues, and is
/// applied as a whole or not at all. It checks key, fencing token and version when it runs, so a late one is never
/// applied after a later append has moved the version.
///
/// # Errors
/// - [`StoreError::Unavailable`] if the file stays locked for too long, the disk is full or fails, or no tokio
///   runtime is running.
/// - [`StoreError::Unavailable`] also, not retryable and with [`FileReplaced`](crate::FileReplaced) as its source, if
///   a file of the store was deleted or replaced. `OutcomeUnknown` with this source if that happened during the
///   write.
/// - [`StoreError::OutcomeUnknown`] if the commit fails for another reason than a lock.
/// - [`StoreError::TooLarge`] for a batch beyond 64 MiB.
/// - [`StoreError::Corrupt`] if the file is damaged, or if more than a thousand consecutive entries are missing.
///
/// # Example
/// See the crate's example.
#[derive(Clone)]
pub struct SqliteStore {
    path: Option<Arc<Path>>,
    files: Option<Arc<OpenFiles>>,
    writing: Arc<ConnectionQueue>,
    reading: Arc<ConnectionQueue>,
}

impl SqliteStore {
    /// Opens the store in this file and creates the file if it does not exist; its folder must exist. A file with
    /// an older schema is migrated. On Unix, only the owner can read a file that the store creates; a file that exists
    /// keeps its permissions.
    ///
    /// It checks the whole file with `PRAGMA integrity_check`, and refuses a file with a finding
    /// ([`OpenError::Damaged`]). It finds neither a changed value that still fits the schema, nor appends that are missing
    /// because the `-wal` was damaged. The check reads the whole file; 127 MB cost 0.24 s of processor time.
    ///
    /// # Errors
    /// [`OpenError`] names the remedy. A refused file stays unchanged.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let path = std::path::absolute(path.into()).map_err(|error| OpenError::Unreachable(error.into()))?;
        let path: Arc<Path> = Arc::from(path);
        let file = Arc::clone(&path);
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let opening = runtime.spawn_blocking(move || connections(&file));
        // The task fails only if the runtime shuts down.
        let (writer, readers, files) = opening.await.map_err(|_| OpenError::NoRuntime)??;
        Ok(Self {
            path: Some(path),
            files: Some(Arc::new(files)),
            writing: ConnectionQueue::new(vec![writer]),
            reading: ConnectionQueue::new(readers),
        })
    }

    /// Creates a store without a file, for tests. It ends with its last clone.
    ///
    /// # Errors
    /// [`OpenError`] if there is not enough memory.
    pub fn in_memory() -> Result<Self, OpenError> {
        let only = ConnectionQueue::new(vec![file::in_memory()?]);
        let reading = Arc::clone(&only);
        Ok(Self { path: None, files: None, writing: only, reading })
    }

    /// Closes the file after all earlier requests have finished. Later calls on other clones return
    /// [`StoreError::Unavailable`].
    ///
    /// If a store is only dropped, its file is closed soon after, off the async threads.
    pub async fn close(self) {
        self.reading.close().await;
        // The last connection to close cleans up, which only the writing one can do.
        self.writing.close().await;
    }
}

/// Opens the writing connection and the reading ones, and notes their files.
fn connections(path: &Path) -> Result<(Connection, Vec<Connection>, OpenFiles), OpenError> {
    let unreachable = |error: BoxError| OpenError::Unreachable(error);
    let writer = file::writer(path)?;
    let files = OpenFiles::at(path).map_err(|error| unreachable(error.into()))?;
    let readers = (0..READERS).map(|_| file::reader(path)).collect::<Result<_, _>>()?;
    files.check().map_err(|error| unreachable(error.into()))?;
    Ok((writer, readers, files))
}

impl SqliteStore {
    /// Runs a write, unless a file of the store is no longer where the next process looks for it.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let files = self.files.clone();
        let checked = move |connection: &mut Connection| {
            let check = || files.as_ref().map_or(Ok(()), |files| files.check());
            check().map_err(lasting)?;
            let done = work(connection)?;
            check().map_err(StoreError::outcome_unknown)?;
            Ok(done)
        };
        // A write whose task failed may have been applied. A failed read can be retried.
        self.writing.run(StoreError::outcome_unknown, checked).await
    }
}

#[async_trait]
impl ConversationStore for SqliteStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        let key = key.clone();
        self.reading
            .run(StoreError::unavailable, move |connection| load::load(connection, &key, None, range))
            .await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        let key = key.clone();
        self.reading
            .run(StoreError::unavailable, move |connection| load::load(connection, &key, Some(tip), range))
            .await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let key = key.clone();
        self.reading
            .run(StoreError::unavailable, move |connection| load::read(connection, &key, after, limit))
            .await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let key = key.clone();
        self.reading.run(StoreError::unavailable, move |connection| load::branches(connection, &key)).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        let key = key.clone();
        let work = move |connection: &mut _| append::append(connection, &key, expected, &batch);
        self.write(work).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        let key = key.clone();
        self.write(move |connection| conversations::delete(connection, &key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let page = page.clone();
        self.reading
            .run(StoreError::unavailable, move |connection| conversations::list(connection, &page))
            .await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
