//! How far a turn has come, and what it holds there.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::Stream;
use message_aggregator::{ChatResponse, Chunk};

use crate::{AdvisorChain, Batches, ChatRequest, ChunkStream, Error, Result, TurnEnd};

pub(crate) enum State {
    /// Nothing has happened yet. An error here was known when the turn was put together.
    Waiting(Result<Box<(AdvisorChain, ChatRequest)>>),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    Live(Live),
    /// The end is being recorded; the caller gets the last item afterwards.
    Ending(BoxFuture<'static, Result<()>>, Box<Ending>),
    /// The turn is over, and the caller has still to be given its last item.
    Last(Box<Chunk>),
    Ended,
}

pub(crate) struct Live {
    stream: ChunkStream,
    /// What was taken of it at once and not delivered yet.
    ready: VecDeque<Chunk>,
}

pub(crate) struct Ending {
    /// What is being recorded; nothing if the turn goes on without this stream.
    pub(crate) end: Option<TurnEnd>,
    pub(crate) last: LastItem,
}

pub(crate) enum LastItem {
    /// The answer, if its end could be recorded.
    Completed(ChatResponse),
    /// The error, whether or not the end could be recorded.
    Failed(Error),
}

impl State {
    pub(crate) fn live(stream: ChunkStream) -> Self {
        Self::Live(Live { stream, ready: VecDeque::new() })
    }
}

impl Live {
    /// The next chunk, if it was taken already.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }

    /// Makes a chunk that was polled the next one.
    pub(crate) fn put_back(&mut self, chunk: Chunk) {
        self.ready.push_front(chunk);
    }

    /// The next item; what comes together with a chunk that is polled is taken at once.
    #[inline]
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
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
        // If someone who looks panics, nothing is left that others have not seen, and the turn is over.
        let mut ready = std::mem::take(&mut self.ready);
        Pin::new(&mut self.stream).take_ready(&mut ready);
        self.ready = ready;
    }
}
