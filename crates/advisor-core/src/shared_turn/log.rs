use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use message_aggregator::Chunk;

use crate::Error;

/// The chunks of a turn, and the readers that wait for more.
#[derive(Debug)]
pub(super) struct Log {
    chunks: VecDeque<Chunk>,
    /// The number of the first chunk that is kept.
    first: u64,
    most_chunks: usize,
    outcome: Option<Outcome>,
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
    pub(super) fn new(most_chunks: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            first: 0,
            most_chunks,
            outcome: None,
            readers: 0,
            next_reader: 0,
            waiting: BTreeMap::new(),
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        if self.chunks.len() == self.most_chunks {
            self.chunks.pop_front();
            self.first += 1;
        }
        self.chunks.push_back(chunk);
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

    pub(super) fn readers(&self) -> usize {
        self.readers
    }

    pub(super) fn find(&self, number: u64) -> Found {
        let Some(place) = number.checked_sub(self.first) else { return Found::Dropped { first: self.first } };
        let chunk = usize::try_from(place).ok().and_then(|place| self.chunks.get(place));
        match (chunk, &self.outcome) {
            (Some(chunk), _) => Found::Chunk(chunk.clone()),
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
