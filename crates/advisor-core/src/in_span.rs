use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use message_aggregator::Chunk;
use tracing::Span;

use crate::{Batches, ChunkStream, Result};

impl ChunkStream {
    /// Keeps `span` open while this stream is live, and enters it whenever the stream is polled.
    ///
    /// The span closes when the answer completes, fails or is dropped: before anything outside runs.
    pub fn in_span(self, span: Span) -> Self {
        if span.is_disabled() { self } else { Self::from_batches(InSpan { inner: self, span }) }
    }
}

struct InSpan {
    // The stream goes first: what it drops still belongs to the span.
    inner: ChunkStream,
    span: Span,
}

impl Stream for InSpan {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let _entered = this.span.enter();
        Pin::new(&mut this.inner).poll_next(cx)
    }
}

impl Batches<Chunk> for InSpan {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Chunk>) {
        let this = &mut *self;
        let _entered = this.span.enter();
        Pin::new(&mut this.inner).take_ready(ready);
    }
}
