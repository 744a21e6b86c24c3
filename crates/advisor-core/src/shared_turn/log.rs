//! `Log`: the numbered chunks of a turn, its end, and the readers that wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use message_aggregator::Chunk;

use super::kept_chunks::KeptChunks;
use crate::{Error, ErrorKind};

/// The chunks of a turn, and the readers that wait for more.
#[derive(Debug)]
pub(super) struct Log {
    /// With the bytes of each.
    chunks: VecDeque<(Chunk, usize)>,
    bytes: usize,
    /// The number of the first chunk that is kept.
    first: u64,
    kept: KeptChunks,
    outcome: Option<Outcome>,
    abandonment: Abandonment,
    readers: usize,
    next_reader: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// The effect of a reader on its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderRole {
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

/// Whether the turn is cancelled because nobody reads it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Abandonment {
    Kept,
    Abandoned,
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Completed,
    Failed(Arc<Error>),
}

/// The content at the place of a reader.
#[derive(Debug)]
pub(super) enum Found {
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
    pub(super) fn new(kept: KeptChunks) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            first: 0,
            kept,
            outcome: None,
            abandonment: Abandonment::Kept,
            readers: 0,
            next_reader: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Adds a chunk and its size in bytes. The newest chunk is kept whatever its size.
    pub(super) fn push(&mut self, chunk: Chunk, bytes: usize) {
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
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    pub(super) fn error(&self) -> Option<Arc<Error>> {
        match &self.outcome {
            Some(Outcome::Failed(error)) => Some(Arc::clone(error)),
            Some(Outcome::Completed) | None => None,
        }
    }

    /// Notes that the turn is cancelled because nobody reads it.
    pub(super) fn abandon(&mut self) {
        self.abandonment = Abandonment::Abandoned;
    }

    /// Checks whether the turn was abandoned, and neither completed nor failed before its cancellation took effect.
    pub(super) fn is_abandoned(&self) -> bool {
        let other_end = match &self.outcome {
            None => false,
            Some(Outcome::Completed) => true,
            Some(Outcome::Failed(error)) => error.kind() != ErrorKind::Cancelled,
        };
        self.abandonment == Abandonment::Abandoned && !other_end
    }

    pub(super) fn readers(&self) -> usize {
        self.readers
    }

    pub(super) fn find(&self, number: u64) -> Found {
        let Some(place) = number.checked_sub(self.first) else { return Found::Dropped { first: self.first } };
        let chunk = usize::try_from(place).ok().and_then(|place| self.chunks.get(place));
        match (chunk, &self.outcome) {
            (Some((chunk, _)), _) => Found::Chunk(chunk.clone()),
            (None, Some(outcome)) => Found::End(outcome.clone()),
            (None, None) => Found::Later,
        }
    }

    /// Adds a reader and returns its number.
    pub(super) fn join(&mut self, role: ReaderRole) -> u64 {
        self.readers += role.count();
        self.next_reader += 1;
        self.next_reader
    }

    /// Removes a reader. Returns whether it was the last one of a turn that has not ended.
    pub(super) fn leave(&mut self, reader: u64, role: ReaderRole) -> bool {
        self.readers -= role.count();
        self.waiting.remove(&reader);
        role == ReaderRole::Reader && self.readers == 0 && !self.has_ended()
    }

    /// Wakes the reader when the log changes.
    pub(super) fn wait(&mut self, reader: u64, waker: &Waker) {
        match self.waiting.get_mut(&reader) {
            Some(known) => known.clone_from(waker),
            None => drop(self.waiting.insert(reader, waker.clone())),
        }
    }

    /// Takes the wakers of the waiting readers.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}
