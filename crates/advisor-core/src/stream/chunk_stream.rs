//! `ChunkStream`: a source of chunks and the completion work that runs before `Completed` comes out; made of deltas, or
//! kept in a span.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, FusedStream, Stream};
use message_aggregator::{ChatResponse, Chunk, Delta, MessageAggregator};
use pin_project_lite::pin_project;
use tracing::Span;

use crate::{Error, ErrorKind, Result, Turn, TurnId, drop_caught};

/// The chunks of an answer and the work to run when it is complete.
///
/// # Ordering
/// The last item of a successful stream is [`Chunk::Completed`]. When the source returns it, the source is
/// released and the work added with [`ChunkStream::on_completed`] runs. Each piece is awaited in the order in
/// which it was added, innermost first. Only then the stream returns `Completed`. No advisor can see the end of an
/// answer before all work inside it has finished.
///
/// # Cancellation
/// Dropping the stream drops its source and then the work that has not run.
///
/// # Errors
/// After an error nothing follows, and no work runs. A source that ends without `Completed` causes an error of
/// kind [`ErrorKind::Unfinished`]. Items after `Completed` are never returned.
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
    // Declared before the stages, so that a drop runs from the inside out.
    state: State,
    /// Innermost first. They are not nested streams, since each layer would cost one more call per chunk.
    stages: Vec<Stage>,
    emitted: bool,
    /// The turn of its chunks, once asked for or known.
    pub(crate) turn: Option<TurnOfStream>,
}

/// The turn of the chunks of a stream.
#[derive(Debug, Clone)]
pub(crate) enum TurnOfStream {
    Known(Arc<Turn>),
    /// That of a stream that an advisor has made itself: known when the chain gets it. Nobody polls it before.
    Later(Arc<OnceLock<Arc<Turn>>>),
}

impl TurnOfStream {
    pub(crate) fn get(&self) -> &Turn {
        match self {
            Self::Known(turn) => turn,
            // A stream outside any chain has a turn of its own.
            Self::Later(turn) => turn.get_or_init(|| Turn::new(TurnId::random())),
        }
    }
}

enum State {
    Live(Pin<Box<dyn Stream<Item = Result<Chunk>> + Send>>),
    Completing(BoxFuture<'static, Result<ChatResponse>>),
    Ended,
}

/// A stage around a source.
enum Stage {
    /// Observer of every chunk.
    Look(Box<dyn FnMut(&Chunk) + Send>),
    /// Work for the end of the answer.
    Work(Box<dyn FnOnce(ChatResponse) -> BoxFuture<'static, Result<ChatResponse>> + Send>),
}

impl ChunkStream {
    /// Creates a stream from `source`, whose last item must be [`Chunk::Completed`].
    pub fn new(source: impl Stream<Item = Result<Chunk>> + Send + 'static) -> Self {
        Self { state: State::Live(Box::pin(source)), stages: Vec::new(), emitted: false, turn: None }
    }

    /// Creates a stream of a known answer: its blocks as chunks, then its completion.
    pub fn answer(response: impl Into<ChatResponse>) -> Self {
        let response = response.into();
        let mut chunks: Vec<_> =
            response.blocks().flat_map(|(block, content)| Chunk::from_block(block, content)).collect();
        chunks.push(Chunk::Completed(response));
        Self::new(stream::iter(chunks.into_iter().map(Ok)))
    }

    /// Adds work for the end of the answer. Outer advisors receive the response that it returns.
    ///
    /// It runs once, after all work added before it, if the answer completes without an error.
    pub fn on_completed<F, Fut>(self, work: F) -> Self
    where
        F: FnOnce(ChatResponse) -> Fut + Send + 'static,
        Fut: Future<Output = Result<ChatResponse>> + Send + 'static,
    {
        self.with_stage(Stage::Work(Box::new(move |response| work(response).boxed())))
    }

    /// Calls `look` with every chunk, including `Completed`.
    ///
    /// It costs one call per chunk and no allocation.
    pub fn inspect_chunks(self, look: impl FnMut(&Chunk) + Send + 'static) -> Self {
        self.with_stage(Stage::Look(Box::new(look)))
    }

    /// Notes the turn of the chunks, unless it is known.
    pub(crate) fn belongs_to(&mut self, turn: Arc<Turn>) {
        match &self.turn {
            None => self.turn = Some(TurnOfStream::Known(turn)),
            Some(TurnOfStream::Known(_)) => {}
            Some(TurnOfStream::Later(own)) => {
                own.get_or_init(|| turn);
            }
        }
    }

    fn with_stage(self, stage: Stage) -> Self {
        // A stage added after completion work has started wraps the whole stream.
        let mut stream = match self.state {
            State::Live(_) => self,
            State::Completing(_) => self.inside(Self::new),
            State::Ended => return self,
        };
        stream.stages.push(stage);
        stream
    }

    /// Returns the stream that `around` makes of this one, or this one if it has ended.
    pub(crate) fn inside(self, around: impl FnOnce(Self) -> Self) -> Self {
        if matches!(self.state, State::Ended) {
            return self;
        }
        let (emitted, turn) = (self.emitted, self.turn.clone());
        Self { emitted, turn, ..around(self) }
    }

    /// Passes a chunk, other than the last one, to all observers.
    #[inline]
    fn show(&mut self, chunk: &Chunk) {
        self.emitted = true;
        for stage in &mut self.stages {
            if let Stage::Look(look) = stage {
                look(chunk);
            }
        }
    }

    /// Releases the source. Returns the completion at once if there is no work to run.
    fn complete(&mut self, response: ChatResponse) -> Option<Chunk> {
        self.enter(State::Ended);
        let stages = std::mem::take(&mut self.stages);
        if stages.iter().any(|stage| matches!(stage, Stage::Work(_))) {
            self.state = State::Completing(run_in_order(stages, response).boxed());
            return None;
        }
        let completed = Chunk::Completed(response);
        for stage in stages {
            if let Stage::Look(mut look) = stage {
                look(&completed);
                drop_caught(look);
            }
        }
        Some(completed)
    }

    /// Replaces the state and catches a panic of its drop, so that the answer continues. Not inlined, to keep the
    /// path of each chunk short.
    #[cold]
    #[inline(never)]
    fn enter(&mut self, state: State) {
        drop_caught(std::mem::replace(&mut self.state, state));
    }

    /// Handles the last item of the source. Returns `None` if completion work has to run first.
    fn source_ended(&mut self, last: Option<Result<Chunk>>) -> Option<Result<Chunk>> {
        match last {
            Some(Ok(Chunk::Completed(response))) => self.complete(response).map(Ok),
            Some(Err(error)) => Some(Err(self.fail(error))),
            Some(Ok(_)) | None => {
                let error = Error::new(
                    ErrorKind::Unfinished,
                    "a stream of chunks ended without `Completed`; the model or advisor that made it must end it so",
                );
                Some(Err(self.fail(error)))
            }
        }
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        let State::Completing(work) = &mut self.state else { return Poll::Ready(None) };
        let outcome = ready!(work.as_mut().poll(cx));
        self.enter(State::Ended);
        Poll::Ready(Some(match outcome {
            Ok(response) => Ok(Chunk::Completed(response)),
            Err(error) => Err(self.fail(error)),
        }))
    }

    fn fail(&mut self, error: Error) -> Error {
        self.enter(State::Ended);
        drop_caught(std::mem::take(&mut self.stages));
        if self.emitted { error.mark_emitted() } else { error }
    }
}

/// Runs the work in order; an error carries the response that the failed work received.
async fn run_in_order(stages: Vec<Stage>, mut response: ChatResponse) -> Result<ChatResponse> {
    for stage in stages {
        match stage {
            Stage::Look(mut look) => {
                look(&Chunk::Completed(response.clone()));
                drop_caught(look);
            }
            Stage::Work(work) => {
                let answered = response.clone();
                response = work(response).await.map_err(|error| error.or_partial(answered))?;
            }
        }
    }
    Ok(response)
}

impl Stream for ChunkStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let State::Live(source) = &mut this.state {
            let polled = source.as_mut().poll_next(cx);
            if let Poll::Ready(Some(Ok(chunk))) = &polled
                && !matches!(chunk, Chunk::Completed(_))
            {
                this.show(chunk);
                return polled;
            }
            if let Some(last) = this.source_ended(ready!(polled)) {
                return Poll::Ready(Some(last));
            }
        }
        this.poll_work(cx)
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
            .field("stages", &self.stages.len())
            .finish_non_exhaustive()
    }
}

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
