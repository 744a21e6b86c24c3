//! `streamed` and `whole`: a turn as the body of a response.

use std::time::Duration;

use advisor_core::{Chunk, ErrorKind};
use advisor_sse::{Encoder, Encoding, Failure, Frames};
use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Span;

use crate::refusal::{Refusal, log_failure};
use crate::request_id::RequestId;
use crate::shared_turn::{ReaderError, TurnReading};

/// The time within which a failure of the first request is a status. The stream reports a later one, so that no proxy
/// waits too long for the headers.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The silence after which a comment keeps the connection open. Some proxies cut it after eight seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The bytes of one piece of the body, at least.
const PIECE: usize = 16 << 10;

type Item = Option<Result<Chunk, ReaderError>>;

/// A turn on its way to a client.
struct Sending<E> {
    reader: TurnReading,
    encoding: Encoding<E>,
    /// The first item, if it was read before the headers were sent.
    first: Option<Item>,
    /// The time of the last bytes. Chunks may follow that the protocol does not show.
    sent_at: Instant,
    request: RequestId,
    span: Span,
}

/// Returns a response that streams a turn. A turn that fails at once is an error status.
pub(crate) async fn streamed<E: Encoder + 'static>(
    mut reader: TurnReading,
    encoder: E,
    frames: Frames,
    request: &RequestId,
) -> Result<Response, Refusal> {
    let first = timeout(STATUS_TIMEOUT, reader.next()).await.ok();
    if let Some(Some(Err(error))) = &first {
        return Err(refused(error));
    }
    let headers = encoder.headers();
    let encoding = Encoding::new(encoder).with_frames(frames);
    let (sent_at, request) = (Instant::now(), request.clone());
    let sending = Sending { reader, encoding, first, sent_at, request, span: Span::current() };
    let pieces = stream::unfold(sending, |mut sending| async move {
        let bytes = sending.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), sending))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    for (name, value) in headers {
        response.headers_mut().insert(*name, axum::http::HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Returns everything that the encoder writes about a turn, up to `most` bytes. A turn that fails is an error status.
pub(crate) async fn whole<E: Encoder>(
    mut reader: TurnReading,
    encoder: E,
    most: usize,
) -> Result<String, Refusal> {
    let mut encoding = Encoding::new(encoder);
    let mut bytes = encoding.begin().to_vec();
    while let Some(item) = reader.next().await {
        let chunk = item.map_err(|error| match &error {
            ReaderError::Turn(_) => refused(&error),
            // It came faster than it was read, or its beginning is no longer kept.
            _ => Refusal::answer_too_large(),
        })?;
        bytes.extend(encoding.push(&Ok(chunk)));
        if bytes.len() > most {
            return Err(Refusal::answer_too_large());
        }
    }
    bytes.extend(encoding.end());
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn refused(error: &ReaderError) -> Refusal {
    match error {
        ReaderError::Turn(error) => error.as_ref().into(),
        _ => Refusal::not_found("the beginning of the turn is no longer kept; read the conversation"),
    }
}

impl<E: Encoder> Sending<E> {
    /// Waits for the next piece of the body, which is not empty; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut piece = BytesMut::from(&self.encoding.begin()[..]);
        while piece.is_empty() && !self.encoding.has_ended() {
            let bytes = self.encode_next().await;
            piece.extend_from_slice(&bytes);
        }
        // Chunks that are ready go out in one piece.
        while piece.len() < PIECE && !self.encoding.has_ended() && self.first.is_none() {
            let Some(item) = self.reader.next().now_or_never() else { break };
            let bytes = self.encode(item);
            piece.extend_from_slice(&bytes);
        }
        self.sent_at = Instant::now();
        (!piece.is_empty()).then(|| piece.freeze())
    }

    async fn encode_next(&mut self) -> Bytes {
        if let Some(item) = self.first.take() {
            return self.encode(item);
        }
        match timeout_at(self.sent_at + KEEP_ALIVE, self.reader.next()).await {
            Ok(item) => self.encode(item),
            Err(_) => {
                // Also for a keep-alive without bytes, after which nothing is sent.
                self.sent_at = Instant::now();
                Bytes::from_static(self.encoding.encoder().keep_alive())
            }
        }
    }

    fn encode(&mut self, item: Item) -> Bytes {
        match item {
            Some(Ok(chunk)) => self.encoding.push(&Ok(chunk)),
            Some(Err(ReaderError::Turn(error))) => {
                self.span.in_scope(|| log_failure(&error));
                self.fail(Failure::from(&*error))
            }
            // Its next chunks are no longer kept.
            Some(Err(_)) => {
                let mut failure = Failure::from(ErrorKind::Truncated);
                failure.code = "slow_reader";
                failure.message = "the connection was too slow, read the conversation";
                self.fail(failure)
            }
            None => self.encoding.end(),
        }
    }

    fn fail(&mut self, mut failure: Failure) -> Bytes {
        failure.request_id = Some(self.request.as_text().clone());
        self.encoding.fail(&failure)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// A protocol without keep-alives.
    struct Silent;

    impl Encoder for Silent {
        fn begin(&mut self, _: &mut Frames) {}
        fn chunk(&mut self, _: &Chunk, _: &mut Frames) {}
        fn failure(&mut self, _: &Failure, _: &mut Frames) {}
        fn keep_alive(&self) -> &'static [u8] {
            b""
        }
    }

    /// A protocol without keep-alives sends nothing while it waits, and looks again only after a further time.
    #[tokio::test(start_paused = true)]
    async fn empty_keep_alive_is_waited_for_again() {
        let mut polls = 0;
        let reader = stream::poll_fn(move |_| {
            polls += 1;
            if polls < 100 { Poll::Pending } else { Poll::Ready(None) }
        });
        let mut sending = Sending {
            reader: reader.boxed(),
            encoding: Encoding::new(Silent),
            first: None,
            sent_at: Instant::now(),
            request: RequestId::from_headers(&axum::http::HeaderMap::new()),
            span: Span::none(),
        };
        assert!(timeout(10 * KEEP_ALIVE, sending.next()).await.is_err(), "the reader was polled too often");
    }
}
