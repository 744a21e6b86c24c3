use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, FusedStream, Stream, StreamExt};
use message_aggregator::{ChatResponse, Chunk};

use crate::{Error, ErrorKind, Result};

/// The chunks of an answer and the work to be done when it is complete.
///
/// # Ordering
/// The last item of a stream that succeeds is [`Chunk::Completed`]. When the source has given it, the
/// source is released, the work added with [`ChunkStream::on_completed`] runs in the order in which it
/// was added, innermost first, each awaited, and only then `Completed` comes out. No advisor can see
/// the end of an answer before everything inside it is done.
///
/// # Cancellation
/// Dropping the stream drops its source and then the work that has not run, with whatever it holds.
///
/// # Errors
/// After an error nothing follows, and no work runs. A source that ends without `Completed` is an
/// error of kind [`ErrorKind::Unfinished`]; whatever comes after `Completed` cannot get out.
///
/// # Example
/// ```
/// use advisor_core::{ChatResponse, ChunkStream, FinishReason, Message};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let answer = ChatResponse::new(1, Message::assistant("Hi"), FinishReason::Stop);
/// let mut stream = ChunkStream::answer(answer).on_completed(|response| async move {
///     // Runs after the last delta and before `Completed`.
///     Ok(response)
/// });
/// let mut text = String::new();
/// while let Some(chunk) = stream.next().await {
///     text.push_str(chunk?.text().unwrap_or_default());
/// }
/// assert_eq!(text, "Hi");
/// # Ok(()) }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct ChunkStream {
    // The source goes before the work that waits for it, so that a drop goes from the inside out.
    state: State,
    completions: VecDeque<Completion>,
    emitted: bool,
}

enum State {
    Live(BoxStream<'static, Result<Chunk>>),
    Completing(BoxFuture<'static, Result<ChatResponse>>),
    Ended,
}

type Completion = Box<dyn FnOnce(ChatResponse) -> BoxFuture<'static, Result<ChatResponse>> + Send>;

impl ChunkStream {
    /// The chunks of `source`, whose last one must be [`Chunk::Completed`].
    pub fn new(source: impl Stream<Item = Result<Chunk>> + Send + 'static) -> Self {
        Self { state: State::Live(source.boxed()), completions: VecDeque::new(), emitted: false }
    }

    /// An answer that is known already: its blocks as chunks, then its completion.
    pub fn answer(response: ChatResponse) -> Self {
        let mut chunks: Vec<_> =
            response.blocks().flat_map(|(block, content)| Chunk::of_block(block, content)).collect();
        chunks.push(Chunk::Completed(response));
        Self::new(stream::iter(chunks.into_iter().map(Ok)))
    }

    /// Adds work for the end of the answer. What it gives is the response that those outside get.
    ///
    /// It runs once, after all work added before it, if the answer completes and nothing fails.
    pub fn on_completed<F, Fut>(mut self, work: F) -> Self
    where
        F: FnOnce(ChatResponse) -> Fut + Send + 'static,
        Fut: Future<Output = Result<ChatResponse>> + Send + 'static,
    {
        self.completions.push_back(Box::new(move |response| work(response).boxed()));
        self
    }

    fn complete(&mut self, response: ChatResponse) {
        let completions = std::mem::take(&mut self.completions);
        self.state = State::Completing(run_in_order(completions, response).boxed());
    }

    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Ended;
        self.completions.clear();
        if self.emitted { error.after_emission() } else { error }
    }
}

/// Runs the work one after the other; an error carries the response it was to be done for.
async fn run_in_order(completions: VecDeque<Completion>, mut response: ChatResponse) -> Result<ChatResponse> {
    for completion in completions {
        let answered = response.clone();
        response = completion(response).await.map_err(|error| error.with_partial(answered))?;
    }
    Ok(response)
}

impl Stream for ChunkStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut self.state {
                State::Live(source) => match ready!(source.as_mut().poll_next(cx)) {
                    // With no work waiting, the answer is complete as soon as its source is gone.
                    Some(Ok(Chunk::Completed(response))) if self.completions.is_empty() => {
                        self.state = State::Ended;
                        return Poll::Ready(Some(Ok(Chunk::Completed(response))));
                    }
                    Some(Ok(Chunk::Completed(response))) => self.complete(response),
                    Some(Ok(chunk)) => {
                        self.emitted = true;
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(self.fail(error)))),
                    None => {
                        let error = Error::new(
                            ErrorKind::Unfinished,
                            "a stream of chunks ended without `Completed`; the model or advisor that made it must end it so",
                        );
                        return Poll::Ready(Some(Err(self.fail(error))));
                    }
                },
                State::Completing(work) => {
                    let outcome = ready!(work.as_mut().poll(cx));
                    self.state = State::Ended;
                    return Poll::Ready(Some(match outcome {
                        Ok(response) => Ok(Chunk::Completed(response)),
                        Err(error) => Err(self.fail(error)),
                    }));
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl FusedStream for ChunkStream {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

impl fmt::Debug for ChunkStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Live(_) => "live",
            State::Completing(_) => "completing",
            State::Ended => "ended",
        };
        f.debug_struct("ChunkStream")
            .field("state", &state)
            .field("completions", &self.completions.len())
            .finish_non_exhaustive()
    }
}
