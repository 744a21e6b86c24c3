//! `ChunkStream::in_span`: keeps a tracing span open while the stream is live.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use message_aggregator::Chunk;
use tracing::Span;

use crate::{ChunkStream, Result};

impl ChunkStream {
    /// Keeps `span` open while this stream is live, and enters it whenever the stream is polled.
    ///
    /// The span closes when the answer completes, fails or is dropped: before anything outside runs.
    pub fn in_span(self, span: Span) -> Self {
        self.in_span_with(span, |_, _| {})
    }

    /// Does the same as [`in_span`](Self::in_span), and calls `tell` with every item, to record fields in
    /// the span.
    pub(crate) fn in_span_with<F>(self, span: Span, tell: F) -> Self
    where
        F: FnMut(&Span, &Result<Chunk>) + Send + Unpin + 'static,
    {
        if span.is_disabled() { self } else { Self::new(InSpan { inner: self, span, tell }) }
    }
}

struct InSpan<F> {
    // Declared first, so that the stream is dropped inside its span.
    inner: ChunkStream,
    span: Span,
    tell: F,
}

impl<F: FnMut(&Span, &Result<Chunk>) + Unpin> Stream for InSpan<F> {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let _entered = this.span.enter();
        let polled = Pin::new(&mut this.inner).poll_next(cx);
        if let Poll::Ready(Some(item)) = &polled {
            (this.tell)(&this.span, item);
        }
        polled
    }
}
