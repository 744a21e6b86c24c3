//! `SharedTurn`: one driver of a turn with several readers, and `OnUnread`.

pub(crate) mod kept_chunks;
mod log;
pub(crate) mod reader;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures::{FutureExt, StreamExt};

use self::kept_chunks::{KeptChunks, bytes_of};
use self::log::{Log, Outcome, ReaderRole};
use self::reader::TurnReader;
use crate::{Error, ErrorKind, OnDrop, Spawner, TurnHandle, TurnStream};

/// A running turn that several readers read, each from the chunk and at the pace that it chooses.
///
/// The spawner runs the turn to its end, whether or not it is read. Its chunks are numbered from 0 and kept, so that a
/// reader can join late, or again after a broken connection.
///
/// # Ordering
/// Each reader receives the chunks in the order of the turn. [`Chunk::Completed`](crate::Chunk::Completed) reaches a
/// reader after all work of inner advisors on the answer (law O3).
///
/// # Cancellation
/// Dropping a reader only ends that reader. [`OnUnread`] decides about a turn whose last reader is dropped.
/// [`handle`](Self::handle) cancels the turn for all of its readers.
///
/// # Errors
/// Readers receive the error of the turn, or [`ReaderError::Behind`](crate::ReaderError::Behind) if they are too slow.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, SharedTurn, Spawner, async_trait};
/// use futures::StreamExt;
///
/// struct Noon;
/// #[async_trait]
/// impl ChatModel for Noon {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("Noon."), FinishReason::Stop)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let client = ChatClient::builder(Noon).build()?;
/// let turn = client.prompt().user("How late is it?").stream();
/// let turn = SharedTurn::start(turn, &Spawner::tokio(tokio::runtime::Handle::current()));
///
/// let first: Vec<_> = turn.read().collect().await;
/// // The second reader joins after the end, behind the first chunk.
/// let second: Vec<_> = turn.read_from(1).collect().await;
/// assert_eq!(first.len(), second.len() + 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SharedTurn {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Mutex<Log>,
    handle: TurnHandle,
    on_unread: OnUnread,
}

/// Policy for a turn whose last reader is dropped before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnUnread {
    /// The turn continues, and readers may join again.
    #[default]
    Continue,
    /// The turn is cancelled in this way.
    Cancel(OnDrop),
}

impl SharedTurn {
    /// Runs a turn in the spawner. It continues without readers.
    #[must_use]
    pub fn start(turn: TurnStream, spawner: &Spawner) -> Self {
        Self::start_with(turn, spawner, OnUnread::default(), KeptChunks::default())
    }

    /// Runs a turn in the spawner, with a policy for its last reader and bounds on the chunks that are kept.
    ///
    /// Beyond the bounds, the oldest chunks are dropped. A reader that has not read them yet ends with
    /// [`ReaderError::Behind`](crate::ReaderError::Behind).
    #[must_use]
    pub fn start_with(turn: TurnStream, spawner: &Spawner, on_unread: OnUnread, kept: KeptChunks) -> Self {
        let log = Mutex::new(Log::new(kept));
        let shared = Arc::new(Shared { log, handle: turn.handle(), on_unread });
        spawner.spawn(drive(turn, Ending(Arc::clone(&shared))).boxed());
        Self { shared }
    }

    /// Returns a reader of the whole turn.
    pub fn read(&self) -> TurnReader {
        self.read_from(0)
    }

    /// Returns a reader that begins with the chunk of this number.
    pub fn read_from(&self, number: u64) -> TurnReader {
        TurnReader::new(Arc::clone(&self.shared), number, ReaderRole::Reader)
    }

    /// Returns a reader that begins with the chunk of this number, and that the turn ignores.
    ///
    /// It is not counted, and [`OnUnread`] acts as if it did not exist. It serves readers elsewhere.
    pub fn observe_from(&self, number: u64) -> TurnReader {
        TurnReader::new(Arc::clone(&self.shared), number, ReaderRole::Observer)
    }

    /// Returns the policy for the turn once nobody reads it any more.
    #[must_use]
    pub fn on_unread(&self) -> OnUnread {
        self.shared.on_unread
    }

    /// Returns a handle that cancels the turn.
    #[must_use]
    pub fn handle(&self) -> &TurnHandle {
        &self.shared.handle
    }

    /// Checks whether the turn has ended. Its chunks can still be read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.lock().has_ended()
    }

    /// Returns the error of a turn that has failed or was cancelled.
    #[must_use]
    pub fn error(&self) -> Option<Arc<Error>> {
        self.shared.lock().error()
    }

    /// Checks whether the turn stops, or has stopped, because its last reader was dropped.
    ///
    /// It is false for a turn that was cancelled before, or that has completed or failed nevertheless.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.lock().is_abandoned()
    }

    /// Returns the number of readers that exist.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.shared.lock().readers()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a reader. The turn is cancelled if it was the last one and the policy says so.
    fn leave(&self, reader: u64, role: ReaderRole) {
        let mut log = self.lock();
        if let (true, OnUnread::Cancel(mode)) = (log.leave(reader, role), self.on_unread) {
            if !self.handle.is_cancelled() {
                log.abandon();
            }
            drop(log);
            self.handle.cancel(mode);
        }
    }

    /// Changes the log, then wakes the waiting readers without holding the lock.
    fn change(&self, change: impl FnOnce(&mut Log)) {
        let waiting = {
            let mut log = self.lock();
            change(&mut log);
            log.take_waiting()
        };
        waiting.for_each(Waker::wake);
    }
}

/// Reads the turn to its end.
async fn drive(mut turn: TurnStream, ending: Ending) {
    while let Some(item) = turn.next().await {
        match item {
            Ok(chunk) => {
                let bytes = bytes_of(&chunk);
                ending.0.change(|log| log.push(chunk, bytes));
            }
            Err(error) => ending.0.change(|log| log.end(Outcome::Failed(Arc::new(error)))),
        }
    }
    ending.0.change(|log| log.end(Outcome::Completed));
}

/// Ends the log, also if the spawner drops the driver before its first poll.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let error = Error::new(ErrorKind::Cancelled, "the spawner has dropped the turn");
        self.0.change(|log| log.end(Outcome::Failed(Arc::new(error))));
    }
}
