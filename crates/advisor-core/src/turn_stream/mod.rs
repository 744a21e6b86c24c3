//! `TurnStream`, the root: its states, the start at the first poll, what it delivered, panic detection; `TurnResponse`.

pub(crate) mod control;
mod end;
mod text;

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FusedStream, Stream};
use message_aggregator::{BlockDelta, BlockId, ChatResponse, Chunk, Text};
use tracing::Span;

use crate::turn::side_tasks::AttachedTasks;
use crate::turn_stream::control::TurnControl;
use crate::{
    AdvisorChain, CallKey, ChatRequest, ChunkStream, Error, OnDrop, Result, Spawner, Turn, TurnEnd,
    TurnHandle, spans,
};

/// A running turn: a lazy, cancellable stream that tracks its delivered output.
///
/// # Ordering
/// Nothing happens before the first poll. The last item is `Completed` or an error; by then all work in the chain
/// has finished, and the end of the turn is recorded.
///
/// # Cancellation
/// Dropping it stops the model, the tools and every advisor at once. [`OnDrop`] defines how the turn is recorded
/// then. A [`TurnHandle`] cancels the turn from another task.
///
/// # Errors
/// Those of the chain; [`Error::emitted`] says whether anything was delivered before. If code of the chain panics
/// in a poll and the panic is caught, the next poll ends the turn. Its error is of kind
/// [`ErrorKind::Advisor`](crate::ErrorKind::Advisor).
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
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
/// let client = ChatClient::builder(Yes).build()?;
/// let mut turn = client.prompt().user("Is it?").stream();
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
    beside: AttachedTasks,
    span: Span,
    /// Whether a poll has begun and not returned. If another poll begins then, the earlier one panicked.
    in_poll: bool,
}

impl TurnStream {
    /// Sets the policy for a drop of this turn.
    pub fn with_on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Sets the executor for work that outlives the turn.
    pub fn with_spawner(mut self, spawner: Spawner) -> Self {
        self.spawner = Some(spawner);
        self
    }

    /// Returns the policy for a drop of this turn.
    #[must_use]
    pub fn on_drop(&self) -> OnDrop {
        self.on_drop
    }

    /// Returns a handle that cancels the turn and waits for it, from another task.
    #[must_use]
    pub fn handle(&self) -> TurnHandle {
        TurnHandle::new(Arc::clone(&self.control))
    }

    /// Returns the shared state of the turn.
    #[must_use]
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Reads the turn to its end and returns the response.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn call(self) -> Result<TurnResponse> {
        let turn = Arc::clone(&self.turn);
        Ok(TurnResponse { response: crate::chain::to_completion(self).await?, turn })
    }

    /// Begins the turn. Returns an error that was found when the turn was built.
    fn begin(&mut self) -> Option<Error> {
        let State::Waiting(begin) = std::mem::replace(&mut self.state, State::Ended) else { return None };
        let (chain, request) = match begin {
            Ok(begin) => *begin,
            Err(error) => {
                self.control.settle();
                return Some(error);
            }
        };
        self.span = spans::turn(self.turn.id(), &request);
        self.turn.side_tasks.wake(Arc::clone(&self.control).into());
        let opening = async move {
            request.turn.begin_with(&request.messages);
            chain.next_stream(request).await
        };
        self.state = State::Opening(opening.boxed());
        None
    }

    /// Ends the turn if it was cancelled or a side task has returned.
    fn poll_interruption(&mut self, cx: &mut Context<'_>) {
        if !matches!(self.state, State::Opening(_) | State::Live { .. }) {
            return;
        }
        if let Some(mode) = self.control.take_cancelled() {
            self.cancel(mode);
        } else if let Some(error) = self.beside.poll(&self.turn.side_tasks, cx) {
            self.interrupt(error);
        }
    }

    #[inline]
    fn poll_state(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        loop {
            let around = match &mut self.state {
                State::Live { stream, first } => {
                    let next = match first.take() {
                        Some(chunk) => Poll::Ready(Some(Ok(chunk))),
                        None => Pin::new(stream).poll_next(cx),
                    };
                    match next {
                        Poll::Ready(last @ (None | Some(Ok(Chunk::Completed(_)) | Err(_)))) => {
                            self.chain_ended(last)
                        }
                        next => return next,
                    }
                }
                _ => self.poll_around(cx),
            };
            if let Some(polled) = around {
                return polled;
            }
        }
    }

    /// Handles the last item of the chain. Returns `None` if the end has to be recorded first.
    fn chain_ended(&mut self, last: Option<Result<Chunk>>) -> Option<Poll<Option<Result<Chunk>>>> {
        let last = match last {
            Some(Ok(Chunk::Completed(response))) => {
                Some(Ok(Chunk::Completed(self.with_transcript(response))))
            }
            last => last,
        };
        match last {
            Some(Ok(Chunk::Completed(response)))
                if self.turn.is_recorded() && !self.turn.is_end_recorded() =>
            {
                self.complete(response);
                None
            }
            Some(Err(error)) => {
                self.fail(error);
                None
            }
            last => {
                if let Some(item) = &last {
                    spans::note_turn(&self.span, item);
                }
                self.settle();
                Some(Poll::Ready(last))
            }
        }
    }

    /// Polls the states other than `Live`. Returns `None` if the state changed and has to be polled again.
    fn poll_around(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<Result<Chunk>>>> {
        match &mut self.state {
            State::Live { .. } => None,
            // `poll_turn` begins the turn before it calls this function.
            State::Waiting(_) | State::Ended => Some(Poll::Ready(None)),
            State::Last(_) => match std::mem::replace(&mut self.state, State::Ended) {
                State::Last(chunk) => {
                    self.control.settle();
                    Some(Poll::Ready(Some(Ok(*chunk))))
                }
                _ => None,
            },
            State::Opening(opening) => {
                let Poll::Ready(opened) = opening.as_mut().poll(cx) else { return Some(Poll::Pending) };
                match opened {
                    Ok(stream) => self.state = State::Live { stream, first: None },
                    Err(error) => self.fail(error),
                }
                None
            }
            State::Ending(ending, _) => match ending.as_mut().poll(cx) {
                Poll::Ready(recorded) => Some(Poll::Ready(Some(self.end(recorded)))),
                Poll::Pending => Some(Poll::Pending),
            },
        }
    }
}

impl Stream for TurnStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_turn(cx);
        if let Poll::Ready(Some(Ok(chunk))) = &polled {
            self.delivered.note(chunk);
        }
        polled
    }
}

impl TurnStream {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        if std::mem::replace(&mut self.in_poll, true)
            && let Some(error) = self.end_after_panic()
        {
            return Poll::Ready(Some(Err(error)));
        }
        if matches!(self.state, State::Waiting(_))
            && let Some(error) = self.begin()
        {
            return Poll::Ready(Some(Err(error)));
        }
        let _entered = (!self.span.is_disabled()).then(|| self.span.clone().entered());
        loop {
            self.poll_interruption(cx);
            let polled = self.poll_state(cx);
            let waits = polled.is_pending() && matches!(self.state, State::Opening(_) | State::Live { .. });
            if !waits || !(self.control.poll_cancelled(cx) || self.turn.side_tasks.any()) {
                self.in_poll = false;
                return polled;
            }
        }
    }
}

impl FusedStream for TurnStream {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
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

impl AdvisorChain {
    /// Creates a turn of this chain. Nothing happens before it is polled.
    pub fn stream(&self, request: ChatRequest) -> TurnStream {
        TurnStream::new(Arc::clone(&request.turn), Ok(Box::new((self.clone(), request))))
    }
}

impl TurnStream {
    /// Creates the turn; `begin` is what it begins with, or the error with which it ends.
    pub(crate) fn new(turn: Arc<Turn>, begin: Result<Box<(AdvisorChain, ChatRequest)>>) -> Self {
        Self {
            state: State::Waiting(begin),
            turn,
            control: TurnControl::new(),
            delivered: Delivered::default(),
            on_drop: OnDrop::KeepPartial,
            spawner: None,
            beside: AttachedTasks::default(),
            span: Span::none(),
            in_poll: false,
        }
    }
}

/// The start of a turn, for services that send a status before the answer.
impl TurnStream {
    /// Waits until the turn has started: the chain has answered or failed.
    ///
    /// A service calls it before it sends the head of its HTTP response. So an error, such as a busy conversation
    /// or a rejected key, becomes an HTTP status. Usually the model has begun to answer by then. The returned turn
    /// yields every chunk from the first one on.
    ///
    /// # Cancellation
    /// Dropping the future drops the turn.
    ///
    /// # Errors
    /// Those of the turn up to the chain's answer, or up to its first chunk if that comes at once. The turn's end
    /// is recorded by then. If a model answers before it knows whether it fails, its error is the first item of
    /// the returned turn.
    ///
    /// # Example
    /// ```
    /// # use advisor_core::{ChatClient, Result, TurnStream};
    /// async fn answer(client: &ChatClient, question: &str) -> Result<TurnStream> {
    ///     client.prompt().user(question).stream().started().await
    /// }
    /// ```
    pub async fn started(mut self) -> Result<Self> {
        poll_fn(|cx| self.poll_started(cx)).await?;
        Ok(self)
    }

    fn poll_started(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if matches!(self.state, State::Live { .. } | State::Last(_)) {
            return Poll::Ready(Ok(()));
        }
        match self.poll_turn(cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                self.put_back(chunk);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Pending if !matches!(self.state, State::Live { .. }) => Poll::Pending,
            Poll::Ready(None) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    /// Puts back a polled chunk that was not delivered, as the next one.
    fn put_back(&mut self, chunk: Chunk) {
        match &mut self.state {
            State::Live { first, .. } => *first = Some(chunk),
            state => {
                *state = State::Last(Box::new(chunk));
                self.control.unsettle();
            }
        }
    }
}

enum State {
    /// Not started: the chain and the request with which it begins, or an error that was found when it was built.
    Waiting(Result<Box<(AdvisorChain, ChatRequest)>>),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    Live {
        stream: ChunkStream,
        /// A chunk that was polled to learn that the turn has started. It is not delivered yet.
        first: Option<Chunk>,
    },
    /// The end is being recorded; the caller receives the last item afterwards.
    Ending(BoxFuture<'static, Result<()>>, Box<Ending>),
    /// The turn has ended; its last item is not delivered yet.
    Last(Box<Chunk>),
    Ended,
}

struct Ending {
    /// The end that is being recorded; `None` if the turn continues without this stream.
    end: Option<TurnEnd>,
    /// The answer, if its end could be recorded, or the error, whether or not it could.
    last: Result<ChatResponse>,
}

/// Output of the unfinished round that the caller of a turn was shown.
#[derive(Debug, Default)]
struct Delivered {
    round: u32,
    text: String,
    /// Whether the caller was shown anything in this turn.
    any: bool,
}

impl Delivered {
    #[inline]
    fn note(&mut self, chunk: &Chunk) {
        self.any = true;
        match chunk {
            Chunk::Delta { block, delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) } => {
                self.enter(block.round);
                self.text.push_str(text);
            }
            // The end of a round records its output; a restart voids it.
            Chunk::RoundCompleted(_) | Chunk::Completed(_) | Chunk::AttemptRestarted { .. } => {
                self.text.clear()
            }
            chunk => self.enter(chunk.round()),
        }
    }

    /// Takes the text of the unfinished round.
    fn take_text(&mut self) -> Text {
        std::mem::take(&mut self.text).into()
    }

    fn enter(&mut self, round: u32) {
        if round != self.round {
            self.round = round;
            self.text.clear();
        }
    }
}

/// The response that ended a turn, with the turn; it dereferences to [`ChatResponse`].
///
/// The turn keeps its extensions alive.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnResponse {
    /// The response.
    pub response: ChatResponse,
    /// The turn with its extensions.
    pub turn: Arc<Turn>,
}

impl TurnResponse {
    /// Returns the permanent key of a call of this answer that the turn leaves to its caller, by the id of its block.
    ///
    /// Its position counts in the answer as it was recorded, whatever an advisor outside the tool loop has hidden. There
    /// is none for a call that such an advisor added, for an answer that a memory outside the loop gives again, and
    /// without a loop. [`ChatClient::pending_calls`](crate::ChatClient::pending_calls) has the keys that a memory knows.
    #[must_use]
    pub fn call_key(&self, block: BlockId) -> Option<CallKey> {
        let place = self.turn.facts(|facts| facts.call_blocks.iter().position(|known| *known == block))?;
        Some(CallKey::new(self.turn.id().clone(), block.round, u32::try_from(place).ok()?))
    }
}

impl Deref for TurnResponse {
    type Target = ChatResponse;

    fn deref(&self) -> &ChatResponse {
        &self.response
    }
}

impl From<TurnResponse> for ChatResponse {
    fn from(response: TurnResponse) -> Self {
        response.response
    }
}
