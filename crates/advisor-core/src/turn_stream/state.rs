//! The states of a turn.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::Stream;
use message_aggregator::{ChatResponse, Chunk};

use crate::turn_stream::beginning::Beginning;
use crate::{Batches, ChunkStream, Error, Result, TurnEnd};

pub(super) enum State {
    /// Not started. An error here was found when the turn was built.
    Waiting(Result<Box<Beginning>>),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    Live(Live),
    /// The end is being recorded; the caller receives the last item afterwards.
    Ending(BoxFuture<'static, Result<()>>, Box<Ending>),
    /// The turn has ended; its last item is not delivered yet.
    Last(Box<Chunk>),
    Ended,
}

pub(super) struct Live {
    stream: ChunkStream,
    /// Buffered chunks, not delivered yet.
    ready: VecDeque<Chunk>,
}

pub(super) struct Ending {
    /// The end that is being recorded; `None` if the turn continues without this stream.
    pub(super) end: Option<TurnEnd>,
    pub(super) last: LastItem,
}

pub(super) enum LastItem {
    /// The answer, if its end could be recorded.
    Completed(ChatResponse),
    /// The error, whether or not the end could be recorded.
    Failed(Error),
}

impl State {
    pub(super) fn live(stream: ChunkStream) -> Self {
        Self::Live(Live { stream, ready: VecDeque::new() })
    }
}

impl Live {
    /// Returns the next buffered chunk.
    #[inline]
    pub(super) fn next_ready(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }

    /// Puts back a polled chunk as the next one.
    pub(super) fn put_back(&mut self, chunk: Chunk) {
        self.ready.push_front(chunk);
    }

    /// Polls the next item, and buffers chunks that are ready together with it.
    #[inline]
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        if let Some(chunk) = self.next_ready() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        let polled = Pin::new(&mut self.stream).poll_next(cx);
        if let Poll::Ready(Some(Ok(chunk))) = &polled
            && !matches!(chunk, Chunk::Completed(_))
        {
            self.take_ready();
        }
        polled
    }

    fn take_ready(&mut self) {
        // Taken out first: if an observer panics, chunks that others have not seen are dropped, and the turn ends.
        let mut ready = std::mem::take(&mut self.ready);
        Pin::new(&mut self.stream).take_ready(&mut ready);
        self.ready = ready;
    }
}
