use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::{FusedStream, Stream};
use message_aggregator::{Chunk, Text};
use tracing::Span;

use crate::delivered::Delivered;
use crate::turn_control::TurnControl;
use crate::{
    AdvisorChain, ChatRequest, ChunkStream, Error, ErrorKind, OnDrop, Record, Result, Spawner, Step, Turn,
    TurnEnd, TurnHandle, spans,
};

/// A turn: lazy, cancellable, aware of what it delivered.
///
/// # Ordering
/// Nothing happens before the first poll. Its last item is `Completed` or an error; by then everything
/// in the chain is done, and the end of the turn is recorded.
///
/// # Cancellation
/// Dropping it stops the model, the tools and every advisor at once; [`OnDrop`] says what becomes of
/// the turn. [`TurnHandle`] cancels it from elsewhere.
///
/// # Errors
/// Those of the chain, with what was delivered known to [`Error::emitted`].
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
/// use futures::StreamExt;
///
/// struct Yes;
/// #[async_trait]
/// impl ChatModel for Yes {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("Yes."), FinishReason::Stop)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let chain = AdvisorChain::builder(Yes).build()?;
/// let mut turn = chain.stream(ChatRequest::new(Message::user("Is it?")));
/// while let Some(chunk) = turn.next().await {
///     print!("{}", chunk?.text().unwrap_or_default());
/// }
/// # Ok(()) }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct TurnStream {
    state: State,
    turn: Arc<Turn>,
    control: Arc<TurnControl>,
    delivered: Delivered,
    on_drop: OnDrop,
    spawner: Option<Spawner>,
    span: Span,
}

enum State {
    /// Nothing has happened yet. An error here was known when the turn was put together.
    Waiting(Result<Box<(AdvisorChain, ChatRequest)>>),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    Live(ChunkStream),
    /// The end is being recorded; the error is what the caller gets afterwards.
    Ending(BoxFuture<'static, Result<()>>, Option<Error>),
    Ended,
}

impl TurnStream {
    pub(crate) fn new(chain: AdvisorChain, request: ChatRequest) -> Self {
        let turn = Arc::clone(&request.turn);
        Self::waiting(turn, Ok(Box::new((chain, request))))
    }

    pub(crate) fn failed(turn: Arc<Turn>, error: Error) -> Self {
        Self::waiting(turn, Err(error))
    }

    fn waiting(turn: Arc<Turn>, begin: Result<Box<(AdvisorChain, ChatRequest)>>) -> Self {
        Self {
            state: State::Waiting(begin),
            turn,
            control: TurnControl::new(),
            delivered: Delivered::default(),
            on_drop: OnDrop::Seal,
            spawner: None,
            span: Span::none(),
        }
    }

    /// The same turn, with what becomes of it when it is dropped.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// The same turn, with where work that outlives it may run.
    pub fn with_spawner(mut self, spawner: Spawner) -> Self {
        self.spawner = Some(spawner);
        self
    }

    /// Cancels the turn and waits for it, from elsewhere.
    #[must_use]
    pub fn handle(&self) -> TurnHandle {
        TurnHandle::new(Arc::clone(&self.control), self.turn.id().clone())
    }

    /// What the turn shares.
    #[must_use]
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Reads the turn to its end and gives the response.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn call(self) -> Result<message_aggregator::ChatResponse> {
        crate::chain::to_completion(self).await
    }

    fn begin(&mut self) -> Option<Error> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Waiting(Ok(begin)) => {
                let (chain, request) = *begin;
                self.span = spans::turn(self.turn.id(), &request);
                self.turn.begin_with(&request.messages);
                self.state = State::Opening(async move { chain.next_stream(request).await }.boxed());
                None
            }
            State::Waiting(Err(error)) => {
                self.control.settle();
                Some(error)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Stops everything and records the end; the caller gets `error` afterwards.
    fn end_with(&mut self, end: TurnEnd, error: Error) {
        // Everything of the turn has stopped before its end is written.
        self.state = State::Ended;
        let record = Record::new(self.delivered.round(), Step::End(end), Vec::new());
        let turn = Arc::clone(&self.turn);
        let ending = async move { turn.record(&record).await }.boxed();
        let error = if self.delivered.any() { error.after_emission() } else { error };
        self.state = State::Ending(ending, Some(error));
    }

    fn cancel(&mut self, mode: OnDrop) {
        if mode == OnDrop::FinishTurn && self.spawner.is_some() {
            self.detach();
            self.state = State::Ending(futures::future::ready(Ok(())).boxed(), Some(cancelled()));
            return;
        }
        let end = self.early_end(mode);
        self.end_with(end, cancelled());
    }

    fn early_end(&mut self, mode: OnDrop) -> TurnEnd {
        match mode {
            OnDrop::Rollback => TurnEnd::RolledBack,
            _ => TurnEnd::Interrupted { partial: self.delivered.take_text() },
        }
    }

    /// Lets the turn go on without this stream.
    fn detach(&mut self) {
        let rest = std::mem::replace(&mut self.state, State::Ended);
        let control = Arc::clone(&self.control);
        let Some(spawner) = &self.spawner else { return };
        let rest = Self {
            state: rest,
            turn: Arc::clone(&self.turn),
            control,
            delivered: std::mem::take(&mut self.delivered),
            on_drop: OnDrop::Seal,
            spawner: Some(spawner.clone()),
            span: self.span.clone(),
        };
        self.control = TurnControl::new();
        spawner.spawn(
            async move {
                // Nobody is left to tell; what went wrong is in the record of the turn.
                let _ = rest.call().await;
            }
            .boxed(),
        );
    }

    fn poll_state(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        loop {
            match &mut self.state {
                State::Waiting(_) => {
                    if let Some(error) = self.begin() {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                State::Opening(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                    Ok(stream) => self.state = State::Live(stream),
                    Err(error) => self.fail(error),
                },
                State::Live(stream) => match std::task::ready!(Pin::new(stream).poll_next(cx)) {
                    Some(Ok(chunk)) => {
                        self.delivered.note(&chunk);
                        if chunk.completed().is_some() {
                            self.settle();
                        }
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    Some(Err(error)) => self.fail(error),
                    None => {
                        self.settle();
                        return Poll::Ready(None);
                    }
                },
                State::Ending(ending, error) => {
                    // A record that fails here leaves the turn open, and the next one closes it; the
                    // caller needs to know why the turn failed, not that.
                    let _ = std::task::ready!(ending.as_mut().poll(cx));
                    let error = error.take();
                    self.settle();
                    return Poll::Ready(error.map(Err));
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }

    fn fail(&mut self, error: Error) {
        let partial = self.delivered.take_text();
        self.end_with(TurnEnd::Failed { partial }, error);
    }

    fn settle(&mut self) {
        self.state = State::Ended;
        self.span = Span::none();
        self.control.settle();
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the turn was cancelled")
}

impl Stream for TurnStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let span = this.span.clone();
        let _entered = span.enter();
        let running = matches!(this.state, State::Waiting(_) | State::Opening(_) | State::Live(_));
        if running && let Some(mode) = this.control.poll_cancelled(cx) {
            this.cancel(mode);
        }
        this.poll_state(cx)
    }
}

impl FusedStream for TurnStream {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        match self.state {
            State::Ended => return,
            // Nothing has happened, so there is nothing to end.
            State::Waiting(_) => return self.control.settle(),
            _ => {}
        }
        if self.on_drop == OnDrop::FinishTurn && self.spawner.is_some() {
            return self.detach();
        }
        let end = self.early_end(self.on_drop);
        // Everything of the turn stops here, before anyone is told that it has.
        self.state = State::Ended;
        let left: Vec<_> =
            self.turn.recorders().iter().filter_map(|recorder| recorder.dropped(&end)).collect();
        let control = Arc::clone(&self.control);
        match &self.spawner {
            Some(spawner) if !left.is_empty() => spawner.spawn(
                async move {
                    join_all(left).await;
                    control.settle();
                }
                .boxed(),
            ),
            _ => control.settle(),
        }
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnStream")
            .field("turn", self.turn.id())
            .field("on_drop", &self.on_drop)
            .finish_non_exhaustive()
    }
}

impl Delivered {
    fn take_text(&mut self) -> Text {
        Text::from(self.take())
    }
}
