use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{Chunk, Delta, MessageAggregator};
use pin_project_lite::pin_project;

use crate::{ChunkStream, Error, Result};

impl ChunkStream {
    /// The answer that `deltas` make, put together by `aggregator`: the one aggregation of it.
    ///
    /// The end of `deltas` is the end of the answer. An error among them carries what came before.
    pub fn from_deltas(
        aggregator: MessageAggregator,
        deltas: impl Stream<Item = Result<Delta>> + Send + 'static,
    ) -> Self {
        Self::new(Aggregated { deltas, aggregator: Some(aggregator), chunks: VecDeque::new() })
    }
}

pin_project! {
    struct Aggregated<S> {
        #[pin]
        deltas: S,
        // Gone when the answer has ended.
        aggregator: Option<MessageAggregator>,
        chunks: VecDeque<Chunk>,
    }
}

impl<S: Stream<Item = Result<Delta>>> Stream for Aggregated<S> {
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
            match ready!(this.deltas.as_mut().poll_next(cx)) {
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
