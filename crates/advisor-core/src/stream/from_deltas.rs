//! `ChunkStream::from_deltas`: runs a `MessageAggregator` over a stream of deltas.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{Chunk, Delta, MessageAggregator};
use pin_project_lite::pin_project;

use crate::{ChunkStream, Error, Result};

impl ChunkStream {
    /// Creates the stream of an answer from `deltas`; `aggregator` is its only aggregation.
    ///
    /// The end of `deltas` is the end of the answer. An error among them carries the partial answer.
    pub fn from_deltas(
        aggregator: MessageAggregator,
        deltas: impl Stream<Item = Result<Delta>> + Send + 'static,
    ) -> Self {
        Self::new(Aggregated { deltas, aggregator: Some(aggregator), chunks: VecDeque::new(), failed: None })
    }
}

pin_project! {
    struct Aggregated<S> {
        #[pin]
        deltas: S,
        // `None` when the answer has ended.
        aggregator: Option<MessageAggregator>,
        chunks: VecDeque<Chunk>,
        // Returned after the chunks.
        failed: Option<Error>,
    }
}

impl<S: Stream<Item = Result<Delta>>> Stream for Aggregated<S> {
    type Item = Result<Chunk>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let this = self.as_mut().project();
            if let Some(chunk) = this.chunks.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
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
