use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{Chunk, Delta, MessageAggregator};
use pin_project_lite::pin_project;

use crate::stream::batches::OneByOne;
use crate::{Batches, ChunkStream, Error, Result};

impl ChunkStream {
    /// The answer that `deltas` make, put together by `aggregator`: the one aggregation of it.
    ///
    /// The end of `deltas` is the end of the answer. An error among them carries what came before.
    pub fn from_deltas(
        aggregator: MessageAggregator,
        deltas: impl Stream<Item = Result<Delta>> + Send + 'static,
    ) -> Self {
        Self::from_delta_batches(aggregator, OneByOne { stream: deltas })
    }

    /// As [`from_deltas`](Self::from_deltas), of deltas of which several may be there at once.
    pub fn from_delta_batches(
        aggregator: MessageAggregator,
        deltas: impl Batches<Delta> + Send + 'static,
    ) -> Self {
        Self::from_batches(Aggregated {
            deltas,
            ready: VecDeque::new(),
            aggregator: Some(aggregator),
            chunks: VecDeque::new(),
        })
    }
}

pin_project! {
    struct Aggregated<S> {
        #[pin]
        deltas: S,
        // What was taken of them at once and not pushed yet.
        ready: VecDeque<Delta>,
        // Gone when the answer has ended.
        aggregator: Option<MessageAggregator>,
        chunks: VecDeque<Chunk>,
    }
}

impl<S: Batches<Delta>> Stream for Aggregated<S> {
    type Item = Result<Chunk>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            if let Some(chunk) = this.chunks.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            let Some(aggregator) = this.aggregator else {
                return Poll::Ready(None);
            };
            let next = match this.ready.pop_front() {
                Some(delta) => Some(Ok(delta)),
                None => ready!(this.deltas.as_mut().poll_next(cx)),
            };
            match next {
                Some(Ok(delta)) => {
                    // Most chunks need not wait in the queue.
                    let delta = match aggregator.extend(delta) {
                        Ok(chunk) => return Poll::Ready(Some(Ok(chunk))),
                        Err(delta) => delta,
                    };
                    if let Err(error) = aggregator.push(delta, this.chunks) {
                        let partial = aggregator.partial();
                        *this.aggregator = None;
                        return Poll::Ready(Some(Err(Error::from(error).with_partial(partial))));
                    }
                }
                Some(Err(error)) => {
                    let partial = aggregator.partial();
                    *this.aggregator = None;
                    return Poll::Ready(Some(Err(error.with_partial(partial))));
                }
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
    fn take_ready(self: Pin<&mut Self>, ready: &mut VecDeque<Chunk>) {
        let this = self.project();
        let Some(aggregator) = this.aggregator.as_mut().filter(|_| this.chunks.is_empty()) else { return };
        if this.ready.is_empty() {
            this.deltas.take_ready(this.ready);
        }
        while let Some(delta) = this.ready.pop_front() {
            match aggregator.extend(delta) {
                Ok(chunk) => ready.push_back(chunk),
                // It makes several chunks, none or an error: it is polled.
                Err(delta) => return this.ready.push_front(delta),
            }
        }
    }
}
