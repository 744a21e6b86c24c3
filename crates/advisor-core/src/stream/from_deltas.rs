//! `ChunkStream::from_deltas` and `from_delta_batches`: run a `MessageAggregator` over a stream of deltas.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{Chunk, Delta, MessageAggregator};
use pin_project_lite::pin_project;

use crate::stream::batches::OneByOne;
use crate::{Batches, ChunkStream, Error, Result};

impl ChunkStream {
    /// Creates the stream of an answer from `deltas`; `aggregator` is its only aggregation.
    ///
    /// The end of `deltas` is the end of the answer. An error among them carries the partial answer.
    pub fn from_deltas(
        aggregator: MessageAggregator,
        deltas: impl Stream<Item = Result<Delta>> + Send + 'static,
    ) -> Self {
        Self::from_delta_batches(aggregator, OneByOne { stream: deltas })
    }

    /// Creates the same stream as [`from_deltas`](Self::from_deltas), from deltas that can be taken in batches.
    #[doc(hidden)]
    pub fn from_delta_batches(
        aggregator: MessageAggregator,
        deltas: impl Batches<Delta> + Send + 'static,
    ) -> Self {
        Self::from_batches(Aggregated {
            deltas,
            ready: VecDeque::new(),
            aggregator: Some(aggregator),
            chunks: VecDeque::new(),
            failed: None,
        })
    }
}

pin_project! {
    struct Aggregated<S> {
        #[pin]
        deltas: S,
        // Deltas that were taken but not pushed yet.
        ready: VecDeque<Delta>,
        // `None` when the answer has ended.
        aggregator: Option<MessageAggregator>,
        chunks: VecDeque<Chunk>,
        // Returned after the chunks.
        failed: Option<Error>,
    }
}

impl<S: Batches<Delta>> Aggregated<S> {
    /// Pushes the deltas that are ready. Returns false if there are none.
    #[inline]
    fn push_ready(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        let Some(aggregator) = this.aggregator.as_mut().filter(|_| this.failed.is_none()) else {
            return false;
        };
        this.deltas.take_ready(this.ready);
        let any = !this.ready.is_empty();
        while let Some(delta) = this.ready.pop_front() {
            if let Err(error) = aggregator.push(delta, this.chunks) {
                *this.failed = Some(Error::from(error).or_partial(aggregator.partial()));
                this.ready.clear();
            }
        }
        any
    }
}

impl<S: Batches<Delta>> Stream for Aggregated<S> {
    type Item = Result<Chunk>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(chunk) = self.as_mut().project().chunks.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if self.as_mut().push_ready() {
                continue;
            }
            let this = self.as_mut().project();
            if let Some(error) = this.failed.take() {
                *this.aggregator = None;
                return Poll::Ready(Some(Err(error)));
            }
            let Some(aggregator) = this.aggregator else {
                return Poll::Ready(None);
            };
            match ready!(this.deltas.poll_next(cx)) {
                Some(Ok(delta)) => {
                    if let Err(error) = aggregator.push(delta, this.chunks) {
                        *this.failed = Some(Error::from(error).or_partial(aggregator.partial()));
                    }
                }
                Some(Err(error)) => *this.failed = Some(error.or_partial(aggregator.partial())),
                None => {
                    let finished = this.aggregator.take().map(|aggregator| aggregator.finish(this.chunks));
                    match finished {
                        Some(Ok(response)) => this.chunks.push_back(Chunk::Completed(response)),
                        Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                        None => return Poll::Ready(None),
                    }
                }
            }
        }
    }
}

impl<S: Batches<Delta>> Batches<Chunk> for Aggregated<S> {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Chunk>) {
        // The last chunk of an answer is returned by polling only.
        if self.aggregator.is_none() {
            return;
        }
        if self.chunks.is_empty() {
            self.as_mut().push_ready();
        }
        std::mem::swap(ready, self.project().chunks);
    }
}
