use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::Stream;
use pin_project_lite::pin_project;

use crate::Result;

/// A stream of which several items may be there at once, to be taken in one go.
///
/// Most of what a layer costs for a chunk is the way through it and back. One read of the network brings many chunks, and only
/// the first needs to come that way.
///
/// # Ordering
/// What [`take_ready`](Self::take_ready) gives is what polling would give next, in the same order. It gives only what neither ends
/// anything nor needs anyone to wait: no last item of an answer or a round, no error. If a source gives
/// [`Chunk::Completed`](crate::Chunk::Completed) nevertheless, a [`ChunkStream`](crate::ChunkStream) holds it back until it is polled, and
/// lets go of the source.
///
/// # Cancellation
/// What was taken is as good as polled: whoever took it hands it on, or drops it with the stream.
///
/// # Errors
/// None come this way: they are polled.
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
    /// Moves items that come next and are there already into `ready`, which must be empty; none if there are none.
    ///
    /// They are held in memory until their reader wants them: a few dozen are enough.
    fn take_ready(self: Pin<&mut Self>, ready: &mut VecDeque<T>);
}

pin_project! {
    /// A stream of which nothing is known to be there before it is polled.
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
