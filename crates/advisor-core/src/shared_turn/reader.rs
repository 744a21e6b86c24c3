//! `TurnReader`: a stream from any chunk on; `ReaderError`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use message_aggregator::Chunk;

use super::Shared;
use super::log::{Found, Outcome, ReaderRole};
use crate::Error;

/// A reader of a [`SharedTurn`](crate::SharedTurn): a stream of its chunks, then at most one error.
///
/// A slow reader delays neither the turn nor other readers.
#[derive(Debug)]
#[must_use = "a reader reads nothing unless it is polled"]
pub struct TurnReader {
    shared: Arc<Shared>,
    reader: u64,
    role: ReaderRole,
    next: u64,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Reading,
    Ended,
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
    pub(super) fn new(shared: Arc<Shared>, number: u64, role: ReaderRole) -> Self {
        let reader = shared.lock().join(role);
        Self { shared, reader, role, next: number, progress: Progress::Reading }
    }

    /// Returns the number of the next chunk, counted from 0.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    fn end(&mut self, error: Option<ReaderError>) -> Poll<Option<Result<Chunk, ReaderError>>> {
        self.progress = Progress::Ended;
        Poll::Ready(error.map(Err))
    }
}

impl Stream for TurnReader {
    type Item = Result<Chunk, ReaderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.progress == Progress::Ended {
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
