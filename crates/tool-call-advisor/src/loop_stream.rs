use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_core::{Chunk, ChunkStream, Error, Result, ToolEvent};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::Stream;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::loop_run::{LoopRun, Outcome};

/// The loop as a state machine that owns one inner stream at a time, so that round fifty is as deep as round one.
pub(crate) struct LoopStream {
    state: State,
    /// What comes out before anything else happens.
    ready: VecDeque<Chunk>,
}

enum State {
    /// A round is running.
    Live(Box<Live>),
    /// Something is awaited: an opening, the end of a round, tools.
    Working {
        work: Work,
        events: Option<mpsc::Receiver<ToolEvent>>,
    },
    Ended,
}

struct Live {
    // The stream goes before the run, so that a drop ends the round before the loop says that it ended.
    stream: ChunkStream,
    /// Runs out with the turn's time.
    time: Option<Pin<Box<Sleep>>>,
    run: Box<LoopRun>,
}

type Work = BoxFuture<'static, (Box<LoopRun>, Result<Outcome>)>;

impl LoopStream {
    pub(crate) fn new(run: Box<LoopRun>, stream: ChunkStream) -> Self {
        Self { state: Self::live(run, stream), ready: VecDeque::new() }
    }

    fn live(run: Box<LoopRun>, stream: ChunkStream) -> State {
        let time = run.deadline().map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        State::Live(Box::new(Live { stream, time, run }))
    }

    /// Goes on with what has been worked out.
    fn proceed(&mut self, mut run: Box<LoopRun>, outcome: Result<Outcome>) -> Result<()> {
        self.state = match outcome {
            Ok(Outcome::Opened(stream)) => Self::live(run, stream),
            Ok(Outcome::Again(chunks)) => {
                self.ready.extend(chunks);
                working(async move {
                    let opened = run.open().await.map(Outcome::Opened);
                    (run, opened)
                })
            }
            Ok(Outcome::Tools(chunks, plan)) => {
                self.ready.extend(chunks);
                let (tool_events, events) = run.tool_events();
                let work = async move {
                    let done = run.run_tools(plan, tool_events).await;
                    (run, done)
                };
                State::Working { work: work.boxed(), events }
            }
            Ok(Outcome::Ended(chunks)) => {
                self.ready.extend(chunks);
                State::Ended
            }
            Err(error) => {
                self.state = State::Ended;
                return Err(run.failed(error));
            }
        };
        Ok(())
    }

    fn end_round(&mut self, end: RoundEnd) {
        let State::Live(live) = std::mem::replace(&mut self.state, State::Ended) else { return };
        let Live { stream, mut run, .. } = *live;
        drop(stream);
        self.state = working(async move {
            let outcome = match end {
                RoundEnd::Completed(response) => run.after_round(response).await,
                RoundEnd::OutOfTime => run.out_of_time().await,
                RoundEnd::Failed(error) => Err(run.abandon(error).await),
            };
            (run, outcome)
        });
    }
}

enum RoundEnd {
    Completed(advisor_core::ChatResponse),
    OutOfTime,
    Failed(Error),
}

fn working(work: impl Future<Output = (Box<LoopRun>, Result<Outcome>)> + Send + 'static) -> State {
    State::Working { work: work.boxed(), events: None }
}

impl Live {
    /// The next chunk that is shown, or how the round ended.
    fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<Result<Chunk, RoundEnd>> {
        loop {
            match Pin::new(&mut self.stream).poll_next(cx) {
                Poll::Ready(Some(Ok(Chunk::Completed(response)))) => {
                    return Poll::Ready(Err(RoundEnd::Completed(response)));
                }
                Poll::Ready(Some(Ok(chunk))) => {
                    if self.run.shows(&chunk) {
                        return Poll::Ready(Ok(chunk));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(RoundEnd::Failed(error))),
                Poll::Ready(None) => {
                    let error =
                        Error::new(advisor_core::ErrorKind::Unfinished, "a round was read after its end");
                    return Poll::Ready(Err(RoundEnd::Failed(error)));
                }
                // Chunks that are there come before the turn's time runs out.
                Poll::Pending => {
                    let Some(time) = &mut self.time else { return Poll::Pending };
                    ready!(time.as_mut().poll(cx));
                    return Poll::Ready(Err(RoundEnd::OutOfTime));
                }
            }
        }
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
            match &mut this.state {
                State::Live(live) => match ready!(live.poll_round(cx)) {
                    Ok(chunk) => return Poll::Ready(Some(Ok(chunk))),
                    Err(end) => this.end_round(end),
                },
                State::Working { work, events } => {
                    let worked = work.as_mut().poll(cx);
                    if let Some(events) = events {
                        // Work may have filled the queue and wait for room in it: read it, then go on.
                        let before = this.ready.len();
                        while let Poll::Ready(Some(event)) = events.poll_recv(cx) {
                            this.ready.push_back(Chunk::Tool(Box::new(event)));
                        }
                        if worked.is_pending() && this.ready.len() > before {
                            continue;
                        }
                    }
                    let (run, outcome) = ready!(worked);
                    if let Err(error) = this.proceed(run, outcome) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}
