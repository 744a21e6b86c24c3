use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use advisor_core::{ConversationKey, async_trait};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, Page, ReadRange, Snapshot, StoreError, Version,
};
use rusqlite::Connection;
use tokio::runtime::Handle;

use crate::lane::Lane;
use crate::{OpenError, append, conversations, load, schema};

/// How many loads and lists read at once.
const READERS: usize = 4;

/// The largest batch, in bytes, unless the user of the store says otherwise.
const LARGEST_BATCH: usize = 64 << 20;

/// Conversations in one SQLite file. Clones share its connections; other stores and other processes may
/// open the same file.
///
/// What was acknowledged is on the disk: it survives the end of the process, and of the machine as far as
/// its disk keeps what it has confirmed. The file has two more beside it while it is open, `-wal` and
/// `-shm`; they belong to it, and all three must be on a local disk.
///
/// It keeps everything until it is deleted, and for each batch its key. Fences are honoured.
///
/// # Ordering
/// As in the contract of [`ConversationStore`]. One append of a store is made at a time, in the order in
/// which they were asked for; several stores at one file wait for one another up to five seconds. Readers
/// wait for nobody.
///
/// # Cancellation
/// An append that is dropped while it waits for its turn is not made. One that has begun goes on and is
/// made as a whole or not at all; it looks at key, fence and version when it runs, so that a late one
/// never lands after a later append has moved the version.
///
/// # Errors
/// [`StoreError::Unavailable`] if the file is locked for too long, the disk is full or cannot be read or
/// written, or no tokio runtime runs; [`StoreError::OutcomeUnknown`] if the commit itself fails otherwise
/// than by a lock; [`StoreError::TooLarge`] for a batch beyond 64 MiB, or what
/// [`SqliteStore::with_largest_batch`] says; [`StoreError::Corrupt`] if more than a thousand entries in a row
/// are missing.
///
/// # Example
/// See the crate's example.
#[derive(Clone)]
pub struct SqliteStore {
    path: Option<Arc<Path>>,
    writing: Arc<Lane>,
    reading: Arc<Lane>,
    largest_batch: usize,
}

impl SqliteStore {
    /// The store in this file, which is made if it is not there; its folder must be. A file of an older
    /// version is brought up to date.
    ///
    /// # Errors
    /// [`OpenError`] says what to do. A file that is refused is left as it is.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let path = std::path::absolute(path.into()).map_err(|error| OpenError::Unreachable(error.into()))?;
        let path: Arc<Path> = Arc::from(path);
        let file = Arc::clone(&path);
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let opening = runtime.spawn_blocking(move || connections(&file));
        // It breaks off where the runtime ends.
        let (writer, readers) = opening.await.map_err(|_| OpenError::NoRuntime)??;
        Ok(Self {
            path: Some(path),
            writing: Lane::new(vec![writer]),
            reading: Lane::new(readers),
            largest_batch: LARGEST_BATCH,
        })
    }

    /// A store without a file, for tests. It ends with its last clone.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn in_memory() -> Result<Self, OpenError> {
        let only = Lane::new(vec![schema::in_memory()?]);
        let reading = Arc::clone(&only);
        Ok(Self { path: None, writing: only, reading, largest_batch: LARGEST_BATCH })
    }

    /// The same store, which takes batches of so many bytes, counted in their JSON form.
    #[must_use]
    pub fn with_largest_batch(self, bytes: usize) -> Self {
        Self { largest_batch: bytes, ..self }
    }

    /// Closes the file when what was asked for before has been done. Whoever has another clone gets
    /// [`StoreError::Unavailable`] from then on.
    ///
    /// A store that is only dropped closes its file soon after, off the async threads.
    pub async fn close(self) {
        self.reading.close().await;
        // The last connection to be closed tidies up, and the one that writes can.
        self.writing.close().await;
    }
}

/// The one connection that writes, and those that read.
fn connections(path: &Path) -> Result<(Connection, Vec<Connection>), OpenError> {
    let writer = schema::writer(path)?;
    let readers = (0..READERS).map(|_| schema::reader(path)).collect::<Result<_, _>>()?;
    Ok((writer, readers))
}

/// Nothing is known of a write that has broken off; a read that has can be made again.
fn may_be_written(how: &'static str) -> StoreError {
    StoreError::outcome_unknown(how)
}

fn not_read(how: &'static str) -> StoreError {
    StoreError::unavailable(how)
}

#[async_trait]
impl ConversationStore for SqliteStore {
    async fn load(&self, key: &ConversationKey, view: ReadRange) -> Result<Snapshot, StoreError> {
        let key = key.clone();
        self.reading.run(not_read, move |connection| load::load(connection, &key, None, view)).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        let key = key.clone();
        self.reading.run(not_read, move |connection| load::load(connection, &key, Some(tip), view)).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let key = key.clone();
        self.reading.run(not_read, move |connection| load::read(connection, &key, after, limit)).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        let key = key.clone();
        self.reading.run(not_read, move |connection| load::branches(connection, &key)).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        let (key, largest) = (key.clone(), self.largest_batch);
        let work = move |connection: &mut _| append::append(connection, &key, expected, &batch, largest);
        self.writing.run(may_be_written, work).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.writing.run(may_be_written, move |connection| conversations::delete(connection, &key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        let page = page.clone();
        self.reading.run(not_read, move |connection| conversations::list(connection, &page)).await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
