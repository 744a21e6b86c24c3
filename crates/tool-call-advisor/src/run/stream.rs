//! `LoopStream`: the state machine behind the outgoing stream of the advisor; watches the turn's time limit.
//! `Filter` applies the visibility modes to chunks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use advisor_core::{
    AdvisorChain, BlockDelta, BlockKind, ChatRequest, ChatResponse, Chunk, ChunkFold, ChunkStream, Error,
    ErrorKind, Result, StreamAdvisor, ToolEvent, async_trait,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::Stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use crate::plan::ToolPlan;
use crate::run::LoopRun;
use crate::{ToolCallAdvisor, ToolCallStreaming};

#[async_trait]
impl StreamAdvisor for ToolCallAdvisor {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let run = Box::new(LoopRun::new(Arc::clone(&self.config), request, next)?);
        LoopStream::begin(run).await.map(ChunkStream::new)
    }
}

/// The loop as a state machine that owns one inner stream at a time, so that round fifty is as deep as round one.
pub(crate) struct LoopStream {
    state: State,
    /// Chunks to return before anything else happens.
    ready: VecDeque<Chunk>,
}

enum State {
    /// A round is running.
    Live(Box<Live>),
    /// Work is awaited: the opening or the end of a round, or tools.
    Working {
        work: Work,
        events: Option<mpsc::Receiver<ToolEvent>>,
    },
    /// The error comes after the ready chunks.
    Failed(Error),
    Ended,
}

struct Live {
    // Field order: a drop ends the stream of the round before the run reports the end of the loop.
    stream: ChunkStream,
    /// Present only if the turn's time is limited.
    clock: Option<Clock>,
    run: Box<LoopRun>,
}

/// Timer for the turn's time, with the part of the answer received so far.
struct Clock {
    time: Pin<Box<Sleep>>,
    received: ChunkFold,
    round: u32,
    /// Number of chunks since the last deadline check.
    since: u32,
}

/// Number of chunks between deadline checks, for a stream that never returns `Pending`.
const CHUNKS_PER_CHECK: u32 = 64;

impl Clock {
    fn new(deadline: Instant) -> Self {
        let time = Box::pin(tokio::time::sleep_until(deadline));
        Self { time, received: ChunkFold::default(), round: 0, since: 0 }
    }

    fn has_run_out(&mut self) -> bool {
        if self.since < CHUNKS_PER_CHECK {
            return false;
        }
        self.since = 0;
        Instant::now() >= self.time.deadline()
    }

    fn receive(&mut self, chunk: &Chunk) {
        self.round = chunk.round();
        self.received.push(chunk);
        self.since += 1;
    }
}

type Work = BoxFuture<'static, (Box<LoopRun>, Result<Outcome>)>;

impl LoopStream {
    /// Opens the first round and returns the stream of the loop.
    pub(crate) async fn begin(mut run: Box<LoopRun>) -> Result<Self> {
        let outcome = run.begin().await.map(|opened| run.after_earlier_rounds(opened));
        let mut begun = Self { state: State::Ended, ready: VecDeque::new() };
        begun.proceed(run, outcome);
        match begun.state {
            State::Failed(error) if begun.ready.is_empty() => Err(error),
            state => Ok(Self { state, ready: begun.ready }),
        }
    }

    fn live(run: Box<LoopRun>, stream: ChunkStream) -> State {
        let clock = run.deadline.map(Clock::new);
        State::Live(Box::new(Live { stream, clock, run }))
    }

    /// Moves to the state that follows from `outcome`.
    fn proceed(&mut self, mut run: Box<LoopRun>, outcome: Result<Outcome>) {
        let Outcome { chunks, next } = outcome.unwrap_or_else(Outcome::failed);
        self.ready.extend(chunks);
        self.state = match next {
            Next::Read(stream) => Self::live(run, stream),
            Next::Open => working(None, async move {
                let outcome = run.open().await;
                (run, outcome)
            }),
            Next::RunTools(answer, plan) => {
                let (tool_events, events) = run.tool_events();
                working(events, async move {
                    let outcome = run.run_tools(answer, plan, tool_events).await;
                    (run, outcome)
                })
            }
            Next::End => State::Ended,
            Next::Fail(error) => State::Failed(run.failed(error)),
        };
    }

    #[cold]
    fn take_error(&mut self) -> Option<Error> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    #[cold]
    fn end_round(&mut self, end: RoundEnd) {
        let State::Live(live) = std::mem::replace(&mut self.state, State::Ended) else { return };
        let Live { stream, mut run, .. } = *live;
        drop(stream);
        self.state = working(None, async move {
            let outcome = match end {
                RoundEnd::Completed(response) => run.after_round(response).await,
                RoundEnd::OutOfTime { received, round } => run.out_of_time(received, round).await,
                RoundEnd::Failed(error) => Ok(run.break_off(error).await),
            };
            (run, outcome)
        });
    }
}

enum RoundEnd {
    Completed(ChatResponse),
    OutOfTime { received: ChunkFold, round: u32 },
    Failed(Error),
}

fn working(
    events: Option<mpsc::Receiver<ToolEvent>>,
    work: impl Future<Output = (Box<LoopRun>, Result<Outcome>)> + Send + 'static,
) -> State {
    State::Working { work: work.boxed(), events }
}

impl Live {
    /// Returns whether the chunk is shown. The clock records it either way.
    #[inline]
    fn lets_out(&mut self, chunk: &Chunk) -> bool {
        if let Some(clock) = &mut self.clock {
            clock.receive(chunk);
        }
        self.run.shows(chunk)
    }

    /// Checks the deadline also for a stream that never returns `Pending`.
    #[inline]
    fn has_run_out(&mut self) -> bool {
        self.clock.as_mut().is_some_and(Clock::has_run_out)
    }

    /// Polls the timer of the turn, while the stream is pending.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.clock.as_mut().map_or(Poll::Pending, |clock| clock.time.as_mut().poll(cx))
    }

    fn out_of_time(&mut self) -> RoundEnd {
        let received = self.clock.as_mut().map(|clock| (std::mem::take(&mut clock.received), clock.round));
        let (received, round) = received.unwrap_or_default();
        RoundEnd::OutOfTime { received, round }
    }
}

impl RoundEnd {
    /// Returns how a round ended, given the last item of its stream.
    fn after(last: Option<Result<Chunk>>) -> Self {
        match last {
            Some(Ok(Chunk::Completed(response))) => Self::Completed(response),
            Some(Err(error)) => Self::Failed(error),
            _ => Self::Failed(Error::new(ErrorKind::Unfinished, "a round was read after its end")),
        }
    }
}

impl LoopStream {
    /// Polls the awaited work and moves to the next state.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let State::Working { work, events } = &mut self.state else { return Poll::Ready(()) };
        let worked = work.as_mut().poll(cx);
        if let Some(events) = events {
            // The work may wait for room in a full event queue: drain it, then poll again.
            let before = self.ready.len();
            while let Poll::Ready(Some(event)) = events.poll_recv(cx) {
                self.ready.push_back(Chunk::Tool(Box::new(event)));
            }
            // A task whose budget is spent receives nothing, although events are buffered.
            while worked.is_ready()
                && let Ok(event) = events.try_recv()
            {
                self.ready.push_back(Chunk::Tool(Box::new(event)));
            }
            if worked.is_pending() && self.ready.len() > before {
                return Poll::Ready(());
            }
        }
        let (run, outcome) = ready!(worked);
        self.proceed(run, outcome);
        Poll::Ready(())
    }
}

impl Stream for LoopStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(chunk) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            let end = match &mut this.state {
                State::Live(live) => {
                    if live.has_run_out() {
                        let end = live.out_of_time();
                        this.end_round(end);
                        continue;
                    }
                    let polled = Pin::new(&mut live.stream).poll_next(cx);
                    match polled {
                        Poll::Ready(Some(Ok(ref chunk))) if !matches!(chunk, Chunk::Completed(_)) => {
                            if live.lets_out(chunk) {
                                return polled;
                            }
                            continue;
                        }
                        Poll::Ready(last) => RoundEnd::after(last),
                        // Ready chunks come before the deadline.
                        Poll::Pending => {
                            ready!(live.poll_time(cx));
                            live.out_of_time()
                        }
                    }
                }
                State::Working { .. } => {
                    ready!(this.poll_work(cx));
                    continue;
                }
                State::Failed(_) | State::Ended => return Poll::Ready(this.take_error().map(Err)),
            };
            this.end_round(end);
        }
    }
}

/// The outcome of a step that the loop awaited: the chunks to emit, then the next thing to do.
pub(super) struct Outcome {
    pub(super) chunks: Vec<Chunk>,
    pub(super) next: Next,
}

pub(super) enum Next {
    /// Read the round that was opened.
    Read(ChunkStream),
    /// Open a round.
    Open,
    /// Run tools.
    RunTools(ChatResponse, ToolPlan),
    /// End the turn. `Completed` is the last chunk.
    End,
    /// End the turn with this error.
    Fail(Error),
}

impl Outcome {
    pub(super) fn new(chunks: Vec<Chunk>, next: Next) -> Self {
        Self { chunks, next }
    }

    pub(super) fn failed(error: Error) -> Self {
        Self::new(Vec::new(), Next::Fail(error))
    }

    /// Prepends these chunks.
    pub(super) fn led_by(self, mut first: Vec<Chunk>) -> Self {
        first.extend(self.chunks);
        Self { chunks: first, ..self }
    }
}

/// Filter that decides which chunks of a live round are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) mode: ToolCallStreaming,
    pub(crate) tool_events: bool,
    /// Whether the round is known to be the last one.
    pub(crate) certain: bool,
}

impl Filter {
    /// Returns whether a chunk of a live round is shown as it is.
    #[inline]
    pub(crate) fn shows(self, chunk: &Chunk) -> bool {
        match (self.mode, chunk) {
            (ToolCallStreaming::All, _) | (_, Chunk::AttemptRestarted { .. }) => true,
            (_, Chunk::Tool(_)) => self.tool_events,
            (_, Chunk::Usage { .. }) => false,
            (ToolCallStreaming::TextOnly, chunk) => !belongs_to_call(chunk),
            (ToolCallStreaming::FinalAnswerOnly, Chunk::RoundCompleted(_)) => false,
            (ToolCallStreaming::FinalAnswerOnly, chunk) => self.certain && !belongs_to_call(chunk),
        }
    }

    /// Returns whether the end of a round that another one follows is shown.
    pub(crate) fn shows_round_end(self) -> bool {
        self.mode != ToolCallStreaming::FinalAnswerOnly
    }

    /// Returns whether the last round's content, except calls, is shown only when the round ends.
    pub(crate) fn withheld_answer(self) -> bool {
        self.mode == ToolCallStreaming::FinalAnswerOnly && !self.certain
    }

    /// Returns whether calls that the loop does not run are shown only once that is decided.
    pub(crate) fn withheld_calls(self) -> bool {
        self.mode != ToolCallStreaming::All
    }

    /// Returns whether the last round's usage is shown only when the round ends.
    pub(crate) fn withheld_usage(self) -> bool {
        self.mode == ToolCallStreaming::TextOnly
    }
}

#[inline]
fn belongs_to_call(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Opened { head, .. } => head.kind == BlockKind::ToolCall,
        Chunk::Delta { delta, .. } => matches!(delta, BlockDelta::Arguments(_)),
        Chunk::Closed { content, .. } => content.kind() == BlockKind::ToolCall,
        _ => false,
    }
}
