//! `SharedTurn`: one driver of a turn with several readers (`TurnReader`), and the chunks kept for them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use advisor_core::{BlockDelta, Chunk, Error, ErrorKind, OnDrop, Spawner, TurnHandle, TurnStream, json};
use futures::{FutureExt, Stream, StreamExt};

/// A running turn that several readers read, each from the chunk and at the pace that it chooses.
///
/// The spawner runs the turn to its end, whether or not it is read. Its chunks are numbered from 0 and kept, so that a
/// reader can join late, or again after a broken connection.
///
/// # Ordering
/// Each reader receives the chunks in the order of the turn. [`Chunk::Completed`] reaches a
/// reader after all work of inner advisors on the answer (law O3).
///
/// # Cancellation
/// Dropping a reader only ends that reader. [`OnUnread`] decides about a turn whose last reader is dropped.
/// [`handle`](Self::handle) cancels the turn for all of its readers.
///
/// # Errors
/// Readers receive the error of the turn, or [`ReaderError::Behind`] if they are too slow.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, Result, Spawner};
/// use advisor_server::{KeptChunks, OnUnread, SharedTurn};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("Noon.")])).build()?;
/// let turn = client.prompt().user("How late is it?").stream();
/// let spawner = Spawner::tokio(tokio::runtime::Handle::current());
/// let turn = SharedTurn::start(turn, &spawner, OnUnread::Continue, KeptChunks::default());
///
/// let first: Vec<_> = turn.read().collect().await;
/// // The second reader joins after the end.
/// assert_eq!(first.len(), turn.read().count().await);
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
    /// Runs a turn in the spawner, with a policy for its last reader and bounds on the chunks that are kept.
    ///
    /// Beyond the bounds, the oldest chunks are dropped. A reader that has not read them yet ends with
    /// [`ReaderError::Behind`].
    #[must_use]
    pub fn start(turn: TurnStream, spawner: &Spawner, on_unread: OnUnread, kept: KeptChunks) -> Self {
        let log = Mutex::new(Log::new(kept));
        let shared = Arc::new(Shared { log, handle: turn.handle(), on_unread });
        spawner.spawn(drive(turn, Ending(Arc::clone(&shared))).boxed());
        Self { shared }
    }

    /// Returns a reader of the whole turn.
    pub fn read(&self) -> TurnReader {
        TurnReader::new(Arc::clone(&self.shared), 0, ReaderRole::Reader)
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
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a reader. The turn is cancelled if it was the last one and the policy says so.
    fn leave(&self, reader: u64, role: ReaderRole) {
        let mut log = self.lock();
        if let (true, OnUnread::Cancel(mode)) = (log.leave(reader, role), self.on_unread) {
            log.is_abandoned |= !self.handle.is_cancelled();
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

/// Bounds of the chunks that a [`SharedTurn`] keeps for its readers. The oldest go first, and the
/// newest one always stays.
///
/// # Example
/// ```
/// use advisor_server::KeptChunks;
///
/// let kept = KeptChunks { bytes: 1 << 20, ..KeptChunks::default() };
/// assert_eq!((kept.chunks, kept.bytes), (1 << 18, 1 << 20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..KeptChunks::default()`")]
pub struct KeptChunks {
    /// The number of chunks. 262,144 by default.
    pub chunks: usize,
    /// The bytes of the chunks, about as in JSON, without whole blocks and responses, which repeat them. 64 MiB by
    /// default.
    pub bytes: usize,
}

impl Default for KeptChunks {
    fn default() -> Self {
        Self { chunks: 1 << 18, bytes: 64 << 20 }
    }
}

/// Returns the bytes of a chunk, about as in JSON. The frequent pieces of text are not written for it. The content of
/// whole blocks and responses is not counted: it repeats pieces, and would displace them at the end of a long answer.
fn bytes_of(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Delta {
            delta:
                BlockDelta::Text(text)
                | BlockDelta::Reasoning(text)
                | BlockDelta::Refusal(text)
                | BlockDelta::Arguments(text),
            ..
        } => size_of::<Chunk>().saturating_add(text.len()),
        Chunk::Closed { .. } | Chunk::RoundCompleted(_) | Chunk::Completed(_) => size_of::<Chunk>(),
        _ => json::length(chunk),
    }
}

/// A reader of a [`SharedTurn`]: a stream of its chunks, then at most one error.
///
/// A slow reader delays neither the turn nor other readers.
#[derive(Debug)]
#[must_use = "a reader reads nothing unless it is polled"]
pub struct TurnReader {
    shared: Arc<Shared>,
    reader: u64,
    role: ReaderRole,
    next: u64,
    has_ended: bool,
}

/// The end of a [`TurnReader`] before the completion of its turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReaderError {
    /// The turn failed or was cancelled.
    Turn(Arc<Error>),
    /// The next chunk is no longer kept: the reader is too slow, or joined too late. Read the conversation instead.
    Behind {
        /// The number of the first chunk that is kept.
        first: u64,
    },
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(error) => error.fmt(f),
            Self::Behind { first } => {
                write!(f, "the reader is behind: the chunks before number {first} are no longer kept")
            }
        }
    }
}

impl std::error::Error for ReaderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Turn(error) => error.source(),
            Self::Behind { .. } => None,
        }
    }
}

impl TurnReader {
    fn new(shared: Arc<Shared>, number: u64, role: ReaderRole) -> Self {
        let reader = shared.lock().join(role);
        Self { shared, reader, role, next: number, has_ended: false }
    }

    /// Returns the number of the next chunk, counted from 0.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    fn end(&mut self, error: Option<ReaderError>) -> Poll<Option<Result<Chunk, ReaderError>>> {
        self.has_ended = true;
        Poll::Ready(error.map(Err))
    }
}

impl Stream for TurnReader {
    type Item = Result<Chunk, ReaderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let found = {
            let mut log = self.shared.lock();
            let found = log.find(self.next);
            if matches!(found, Found::Later) {
                log.wait(self.reader, cx.waker());
            }
            found
        };
        match found {
            Found::Chunk(chunk) => {
                self.next += 1;
                Poll::Ready(Some(Ok(chunk)))
            }
            Found::Later => Poll::Pending,
            Found::Dropped { first } => self.end(Some(ReaderError::Behind { first })),
            Found::End(Outcome::Completed) => self.end(None),
            Found::End(Outcome::Failed(error)) => self.end(Some(ReaderError::Turn(error))),
        }
    }
}

impl Drop for TurnReader {
    fn drop(&mut self) {
        self.shared.leave(self.reader, self.role);
    }
}

/// The chunks of a turn, and the readers that wait for more.
#[derive(Debug)]
struct Log {
    /// With the bytes of each.
    chunks: VecDeque<(Chunk, usize)>,
    bytes: usize,
    /// The number of the first chunk that is kept.
    first: u64,
    kept: KeptChunks,
    outcome: Option<Outcome>,
    /// Whether the turn is cancelled because nobody reads it any more.
    is_abandoned: bool,
    readers: usize,
    next_reader: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// The effect of a reader on its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderRole {
    /// The turn may stop when the last one leaves.
    Reader,
    /// The turn ignores it.
    Observer,
}

impl ReaderRole {
    fn count(self) -> usize {
        match self {
            Self::Reader => 1,
            Self::Observer => 0,
        }
    }
}

/// The end of a turn.
#[derive(Debug, Clone)]
enum Outcome {
    Completed,
    Failed(Arc<Error>),
}

/// The content at the place of a reader.
#[derive(Debug)]
enum Found {
    Chunk(Chunk),
    /// The chunk is no longer kept.
    Dropped {
        first: u64,
    },
    /// The turn has ended before this place.
    End(Outcome),
    /// The chunk does not exist yet.
    Later,
}

impl Log {
    fn new(kept: KeptChunks) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            first: 0,
            kept,
            outcome: None,
            is_abandoned: false,
            readers: 0,
            next_reader: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Adds a chunk and its size in bytes. The newest chunk is kept whatever its size.
    fn push(&mut self, chunk: Chunk, bytes: usize) {
        self.chunks.push_back((chunk, bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        while self.chunks.len() > 1 && (self.chunks.len() > self.kept.chunks || self.bytes > self.kept.bytes)
        {
            let dropped = self.chunks.pop_front().map_or(0, |(_, bytes)| bytes);
            self.bytes = self.bytes.saturating_sub(dropped);
            self.first += 1;
        }
    }

    /// Ends the log. Only the first end counts.
    fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    fn error(&self) -> Option<Arc<Error>> {
        match &self.outcome {
            Some(Outcome::Failed(error)) => Some(Arc::clone(error)),
            Some(Outcome::Completed) | None => None,
        }
    }

    /// Checks whether the turn was abandoned, and neither completed nor failed before its cancellation took effect.
    fn is_abandoned(&self) -> bool {
        let other_end = match &self.outcome {
            None => false,
            Some(Outcome::Completed) => true,
            Some(Outcome::Failed(error)) => error.kind() != ErrorKind::Cancelled,
        };
        self.is_abandoned && !other_end
    }

    fn find(&self, number: u64) -> Found {
        let Some(place) = number.checked_sub(self.first) else { return Found::Dropped { first: self.first } };
        let chunk = usize::try_from(place).ok().and_then(|place| self.chunks.get(place));
        match (chunk, &self.outcome) {
            (Some((chunk, _)), _) => Found::Chunk(chunk.clone()),
            (None, Some(outcome)) => Found::End(outcome.clone()),
            (None, None) => Found::Later,
        }
    }

    /// Adds a reader and returns its number.
    fn join(&mut self, role: ReaderRole) -> u64 {
        self.readers += role.count();
        self.next_reader += 1;
        self.next_reader
    }

    /// Removes a reader. Returns whether it was the last one of a turn that has not ended.
    fn leave(&mut self, reader: u64, role: ReaderRole) -> bool {
        self.readers -= role.count();
        self.waiting.remove(&reader);
        role == ReaderRole::Reader && self.readers == 0 && !self.has_ended()
    }

    /// Wakes the reader when the log changes.
    fn wait(&mut self, reader: u64, waker: &Waker) {
        match self.waiting.get_mut(&reader) {
            Some(known) => known.clone_from(waker),
            None => drop(self.waiting.insert(reader, waker.clone())),
        }
    }

    /// Takes the wakers of the waiting readers.
    fn take_waiting(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}
