//! `SharedTurn`: one driver of a turn with several readers (`TurnReader`), and the chunks kept for them.

use std::collections::VecDeque;
use std::sync::Arc;

use advisor_core::{BlockDelta, Chunk, Error, ErrorKind, Message, OnDrop, TurnHandle, TurnStream, json};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::sync::watch;
use tracing::{Instrument, Span};

use crate::access::limits::ServerLimits;

/// A running turn that several readers read, each at its own pace.
///
/// A task runs the turn to its end, whether or not it is read. Its chunks are numbered from 0 and kept, so that a reader can
/// join late, or again after a broken connection. Beyond the limits, the oldest chunks are dropped. A reader that has not read
/// them yet ends with [`ReaderError::Behind`], and delays neither the turn nor other readers.
#[derive(Debug, Clone)]
pub(crate) struct SharedTurn(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    log: watch::Sender<Log>,
    handle: TurnHandle,
    on_unread: Option<OnDrop>,
}

impl SharedTurn {
    /// Runs a turn in a task, which keeps `slot`. `on_unread` is how it is cancelled once its last reader is dropped; `None`
    /// if it then continues.
    pub(crate) fn start(
        turn: TurnStream,
        slot: impl Send + 'static,
        on_unread: Option<OnDrop>,
        limits: ServerLimits,
    ) -> Self {
        let log = Log {
            chunks: VecDeque::new(),
            bytes: 0,
            first: 0,
            limits,
            end: None,
            is_abandoned: false,
            readers: 0,
        };
        let shared = Arc::new(Shared { log: watch::Sender::new(log), handle: turn.handle(), on_unread });
        let driving = drive(turn, Ending(Arc::clone(&shared)));
        let running = async move {
            driving.await;
            drop(slot);
        };
        // The turn's span is inside that of the request that has started it.
        drop(tokio::spawn(running.instrument(Span::current())));
        Self(shared)
    }

    /// Returns a reader of the whole turn.
    pub(crate) fn read(&self) -> TurnReader {
        self.0.log.send_if_modified(|log| {
            log.readers += 1;
            false
        });
        self.reader(0, true)
    }

    /// Returns a reader that begins with the chunk of this number, and that the turn ignores.
    pub(crate) fn observe_from(&self, number: u64) -> TurnReader {
        self.reader(number, false)
    }

    /// Returns a further reader. A turn that stops with its client does so, whoever else reads it.
    pub(crate) fn join(&self) -> TurnReader {
        match self.0.on_unread {
            Some(_) => self.observe_from(0),
            None => self.read(),
        }
    }

    fn reader(&self, next: u64, is_counted: bool) -> TurnReader {
        let (shared, log) = (Arc::clone(&self.0), self.0.log.subscribe());
        TurnReader { shared, log, next, is_counted, has_ended: false }
    }

    /// Returns a handle that cancels the turn for all of its readers.
    pub(crate) fn handle(&self) -> &TurnHandle {
        &self.0.handle
    }

    /// Checks whether the turn has ended. Its chunks can still be read.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.log.borrow().end.is_some()
    }

    /// Returns the error of a turn that has failed or was cancelled.
    pub(crate) fn error(&self) -> Option<Arc<Error>> {
        self.0.log.borrow().end.clone()?.err()
    }

    /// Returns the answer of a turn that has completed.
    pub(crate) fn answer(&self) -> Option<Message> {
        let log = self.0.log.borrow();
        let (last, _) = log.chunks.back()?;
        Some(last.completed()?.message().clone())
    }

    /// Checks whether the turn stops, or has stopped, because its last reader was dropped.
    ///
    /// It is false for a turn that was cancelled before, or that has completed or failed nevertheless.
    pub(crate) fn is_abandoned(&self) -> bool {
        let log = self.0.log.borrow();
        let is_cancelled = match &log.end {
            None => true,
            Some(end) => end.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled),
        };
        log.is_abandoned && is_cancelled
    }
}

/// Reads the turn to its end.
async fn drive(mut turn: TurnStream, ending: Ending) {
    while let Some(item) = turn.next().await {
        match item {
            Ok(chunk) => {
                let bytes = bytes_of(&chunk);
                ending.0.log.send_modify(|log| log.push(chunk, bytes));
            }
            Err(error) => ending.0.end(Err(error)),
        }
    }
    ending.0.end(Ok(()));
}

/// Ends the log, also if the runtime drops the driver.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Err(Error::new(ErrorKind::Cancelled, "the runtime has dropped the turn")));
    }
}

impl Shared {
    /// Ends the log. Only the first end counts.
    fn end(&self, end: Result<(), Error>) {
        self.log.send_modify(|log| {
            log.end.get_or_insert(end.map_err(Arc::new));
        });
    }

    /// Removes a reader. The turn is cancelled if it was the last one and the policy says so.
    fn leave(&self) {
        let mut is_unread = false;
        self.log.send_if_modified(|log| {
            log.readers -= 1;
            is_unread = log.readers == 0 && log.end.is_none();
            log.is_abandoned |= is_unread && self.on_unread.is_some() && !self.handle.is_cancelled();
            false
        });
        if let (true, Some(mode)) = (is_unread, self.on_unread) {
            self.handle.cancel(mode);
        }
    }
}

/// The chunks of a turn of this process or of another one, then at most one error.
pub(crate) type TurnReading = BoxStream<'static, Result<Chunk, ReaderError>>;

/// A reader of a [`SharedTurn`]: its chunks, then at most one error.
#[derive(Debug)]
pub(crate) struct TurnReader {
    shared: Arc<Shared>,
    log: watch::Receiver<Log>,
    /// The number of the next chunk, counted from 0.
    pub(crate) next: u64,
    /// Whether the turn may stop when the last such reader leaves.
    is_counted: bool,
    has_ended: bool,
}

/// The end of a reader before the completion of its turn.
#[derive(Debug, Clone)]
pub(crate) enum ReaderError {
    /// The turn failed or was cancelled.
    Turn(Arc<Error>),
    /// The next chunk is no longer kept: the reader is too slow, or joined too late. `first` is the number of the first one
    /// that is kept.
    Behind { first: u64 },
}

impl TurnReader {
    /// Waits for the next chunk.
    ///
    /// # Cancellation
    /// Dropping the future loses no chunk.
    pub(crate) async fn next(&mut self) -> Option<Result<Chunk, ReaderError>> {
        while !self.has_ended {
            let found = self.log.borrow_and_update().item(self.next);
            let Some(item) = found else {
                // The sender is in `shared`, so it is not gone.
                drop(self.log.changed().await);
                continue;
            };
            match &item {
                Some(Ok(_)) => self.next += 1,
                _ => self.has_ended = true,
            }
            return item;
        }
        None
    }

    pub(crate) fn into_stream(self) -> TurnReading {
        let items = stream::unfold(self, |mut reader| async move {
            let item = reader.next().await?;
            Some((item, reader))
        });
        items.fuse().boxed()
    }
}

impl Drop for TurnReader {
    fn drop(&mut self) {
        if self.is_counted {
            self.shared.leave();
        }
    }
}

/// The chunks of a turn.
#[derive(Debug)]
struct Log {
    /// With the bytes of each.
    chunks: VecDeque<(Chunk, usize)>,
    bytes: usize,
    /// The number of the first chunk that is kept.
    first: u64,
    limits: ServerLimits,
    end: Option<Result<(), Arc<Error>>>,
    /// Whether the turn is cancelled because nobody reads it any more.
    is_abandoned: bool,
    readers: usize,
}

impl Log {
    /// Adds a chunk of so many bytes. The newest chunk is kept whatever its size.
    fn push(&mut self, chunk: Chunk, bytes: usize) {
        self.chunks.push_back((chunk, bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        let (most_chunks, most_bytes) = (self.limits.kept_chunks, self.limits.kept_bytes);
        while self.chunks.len() > 1 && (self.chunks.len() > most_chunks || self.bytes > most_bytes) {
            let dropped = self.chunks.pop_front().map_or(0, |(_, bytes)| bytes);
            self.bytes = self.bytes.saturating_sub(dropped);
            self.first += 1;
        }
    }

    /// Returns the item at the place of a reader, or the end. `None` if it does not exist yet.
    fn item(&self, number: u64) -> Option<Option<Result<Chunk, ReaderError>>> {
        let Some(place) = number.checked_sub(self.first) else {
            return Some(Some(Err(ReaderError::Behind { first: self.first })));
        };
        let chunk = usize::try_from(place).ok().and_then(|place| self.chunks.get(place));
        match (chunk, &self.end) {
            (Some((chunk, _)), _) => Some(Some(Ok(chunk.clone()))),
            (None, Some(Ok(()))) => Some(None),
            (None, Some(Err(error))) => Some(Some(Err(ReaderError::Turn(Arc::clone(error))))),
            (None, None) => None,
        }
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
