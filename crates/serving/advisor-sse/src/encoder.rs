//! `Encoder`, `Encoding` and `encode`: the contract of an encoder, and the order of its calls.

use advisor_core::{Chunk, ErrorKind, Result};
use bytes::Bytes;
use futures::{Stream, StreamExt, future, stream};

use crate::{Failure, Frames};

/// Writes the chunks of one turn in the form of a client protocol.
///
/// An encoder is deterministic: the same calls write the same frames. A stream therefore resumes exactly if its
/// chunks are encoded again and [`Frames::after`] leaves out the frames that the client has received.
///
/// # Ordering
/// [`begin`](Self::begin) is called once, then [`chunk`](Self::chunk) for each chunk. After a chunk that completes
/// the turn, or after [`failure`](Self::failure), nothing is called any more. [`Encoding`] keeps this order.
///
/// # Cancellation
/// An encoder waits for nothing, so it can be dropped at any point.
///
/// # Errors
/// An encoder has no errors. `failure` reports a failed turn to the client.
///
/// # Example
/// ```
/// use advisor_core::Chunk;
/// use advisor_sse::{Encoder, Encoding, Failure, Frames};
///
/// /// Writes the length of each piece of text.
/// struct Lengths;
///
/// impl Encoder for Lengths {
///     fn begin(&mut self, _frames: &mut Frames) {}
///     fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
///         if let Some(text) = chunk.text() {
///             frames.data(&text.len());
///         }
///     }
///     fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
///         frames.named("error", &failure.message);
///     }
/// }
///
/// let mut encoding = Encoding::new(Lengths);
/// assert_eq!(encoding.begin(), "");
/// let failed = advisor_core::Error::new(advisor_core::ErrorKind::Timeout, "no event within 5 s of 10.0.0.7");
/// assert_eq!(encoding.push(&Err(failed)), "event: error\ndata: \"the request took too long\"\n\n");
/// ```
pub trait Encoder: Send {
    /// Returns the names and values of the HTTP headers of the response.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        EVENT_STREAM
    }

    /// Writes the frames before the first chunk.
    fn begin(&mut self, frames: &mut Frames);

    /// Writes a chunk. After [`Chunk::Completed`], it also ends the stream.
    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames);

    /// Writes that the turn failed, and ends the stream.
    fn failure(&mut self, failure: &Failure, frames: &mut Frames);

    /// Returns bytes that clients ignore, to be sent while nothing else is. By default, it is a comment.
    fn keep_alive(&self) -> &'static [u8] {
        b": keep-alive\n\n"
    }
}

/// The headers of server-sent events, which no cache may store and no proxy hold back.
pub(crate) const EVENT_STREAM: &[(&str, &str)] =
    &[("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")];

impl<E: Encoder + ?Sized> Encoder for Box<E> {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        (**self).headers()
    }

    fn begin(&mut self, frames: &mut Frames) {
        (**self).begin(frames);
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        (**self).chunk(chunk, frames);
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        (**self).failure(failure, frames);
    }

    fn keep_alive(&self) -> &'static [u8] {
        (**self).keep_alive()
    }
}

/// Encodes one stream: keeps the order of the calls of an [`Encoder`], and numbers the items.
#[derive(Debug)]
pub struct Encoding<E> {
    encoder: E,
    frames: Frames,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Begun,
    Ended,
}

impl<E: Encoder> Encoding<E> {
    /// Creates the encoding of a stream.
    #[must_use]
    pub fn new(encoder: E) -> Self {
        Self { encoder, frames: Frames::new(), state: State::New }
    }

    /// Sets an empty buffer, such as one with event ids or for a client that reconnects.
    #[must_use]
    pub fn with_frames(self, frames: Frames) -> Self {
        Self { frames, ..self }
    }

    /// Returns the encoder.
    pub fn encoder(&self) -> &E {
        &self.encoder
    }

    /// Returns the bytes that precede the first chunk; nothing after the first call.
    pub fn begin(&mut self) -> Bytes {
        if self.state == State::New {
            self.state = State::Begun;
            self.encoder.begin(&mut self.frames);
        }
        self.frames.take()
    }

    /// Returns the bytes of the next item. Items after the end have none.
    pub fn push(&mut self, item: &Result<Chunk>) -> Bytes {
        match item {
            Ok(chunk) => {
                self.item(|encoder, frames| encoder.chunk(chunk, frames), chunk.completed().is_some())
            }
            Err(error) => self.fail(&Failure::from(error)),
        }
    }

    /// Returns the bytes that report a failure, such as one with a request id.
    pub fn fail(&mut self, failure: &Failure) -> Bytes {
        self.item(|encoder, frames| encoder.failure(failure, frames), true)
    }

    /// Returns the bytes that end a stream whose chunks have ended; those of a failure if it is incomplete.
    pub fn end(&mut self) -> Bytes {
        self.fail(&Failure::from(ErrorKind::Unfinished))
    }

    /// Checks whether the stream has ended, with a completion or a failure.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    fn item(&mut self, write: impl FnOnce(&mut E, &mut Frames), is_last: bool) -> Bytes {
        let begun = self.begin();
        if self.state == State::Ended {
            return begun;
        }
        self.frames.next_item();
        write(&mut self.encoder, &mut self.frames);
        if is_last {
            self.state = State::Ended;
        }
        let written = self.frames.take();
        if begun.is_empty() { written } else { [begun, written].concat().into() }
    }
}

/// Returns the bytes of a stream of chunks, in pieces that are never empty.
///
/// Dropping the returned stream drops the chunks, which cancels their turn.
///
/// # Example
/// ```
/// use advisor_core::{BlockId, Block, Chunk, ChatResponse};
/// use advisor_sse::{ChatEvents, Encoding, encode};
/// use futures::{StreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let chunks = Chunk::from_block(BlockId::new(1, 0), &Block::text("Hello"))
///     .chain([Chunk::Completed(ChatResponse::from("Hello"))]);
/// let bytes = encode(Encoding::new(ChatEvents::default()), stream::iter(chunks.map(Ok)));
/// let bytes: Vec<_> = bytes.collect().await;
/// assert_eq!(bytes.concat(), b"data: {\"type\":\"content\",\"content\":\"Hello\"}\n\ndata: [DONE]\n\n");
/// # }
/// ```
pub fn encode<E: Encoder>(
    mut encoding: Encoding<E>,
    chunks: impl Stream<Item = Result<Chunk>> + Send,
) -> impl Stream<Item = Bytes> + Send {
    let beginning = stream::iter([encoding.begin()]);
    let items = chunks.map(Some).chain(stream::iter([None]));
    let pieces = items.map(move |item| match item {
        Some(item) => encoding.push(&item),
        None => encoding.end(),
    });
    beginning.chain(pieces).filter(|bytes| future::ready(!bytes.is_empty()))
}
