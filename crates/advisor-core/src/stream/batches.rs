//! `Batches`: a stream that hands over several ready items at once; `OneByOne` adapts any other stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use pin_project_lite::pin_project;

use crate::Result;

/// A stream whose ready items can be taken in one batch.
///
/// It is no part of the public interface: only the crates of this workspace use it.
///
/// Most of a layer's cost per chunk is the call through it and back. One network read brings many chunks, and only
/// the first has to take that path. Without batches, a chunk costs 257 instructions more.
///
/// # Ordering
/// [`take_ready`](Self::take_ready) returns the items that polling would return next, in the same order. It never
/// returns an error or the last item of an answer or a round, and never blocks. If a source returns
/// [`Chunk::Completed`](crate::Chunk::Completed) nevertheless, a [`ChunkStream`](crate::ChunkStream) holds it back
/// until it is polled, and releases the source.
///
/// # Cancellation
/// Items taken here count as polled: the caller delivers them, or drops them with the stream.
///
/// # Errors
/// None: errors are returned by polling only.
///
/// # Example
/// ```
/// use std::collections::VecDeque;
/// use std::pin::Pin;
/// use std::task::{Context, Poll};
///
/// use advisor_core::{Batches, ChunkStream, Delta, MessageAggregator, Result};
/// use futures::Stream;
///
/// /// Events that are all here.
/// struct Words(VecDeque<Delta>);
///
/// impl Stream for Words {
///     type Item = Result<Delta>;
///
///     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
///         Poll::Ready(self.0.pop_front().map(Ok))
///     }
/// }
///
/// impl Batches<Delta> for Words {
///     fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Delta>) {
///         ready.append(&mut self.0);
///     }
/// }
///
/// let answer = ChunkStream::from_delta_batches(MessageAggregator::new(1), Words(VecDeque::new()));
/// ```
pub trait Batches<T>: Stream<Item = Result<T>> {
    /// Moves the next items that are ready into `ready`, which must be empty. Adds none if none are ready.
    ///
    /// They stay in memory until the reader wants them: return a few dozen at most.
    fn take_ready(self: Pin<&mut Self>, ready: &mut VecDeque<T>);
}

pin_project! {
    /// Adapter of a plain stream, which never has a ready batch.
    pub(crate) struct OneByOne<S> {
        #[pin]
        pub(crate) stream: S,
    }
}

impl<S: Stream> Stream for OneByOne<S> {
    type Item = S::Item;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().stream.poll_next(cx)
    }
}

impl<T, S: Stream<Item = Result<T>>> Batches<T> for OneByOne<S> {
    fn take_ready(self: Pin<&mut Self>, _: &mut VecDeque<T>) {}
}
