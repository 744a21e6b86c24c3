//! `drive`: reads one turn and stops it at the chosen points.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use advisor_core::{Chunk, Result, TurnStream};
use futures::Stream;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::{AwaitPoint, AwaitPoints, Event, Fault, Outcome};

/// A turn that takes longer, by tokio's clock, waits for an event that never comes.
const LONGEST: Duration = Duration::from_secs(60);
/// The number of times that spawned work of a turn may run before the next turn begins.
const YIELDS: usize = 64;

/// Reads a turn, and stops it at the points of its injections. Nothing of it may remain afterwards.
pub(super) async fn drive(turn: TurnStream, points: &AwaitPoints) -> Outcome {
    points.record(Event::TurnStarted(turn.turn().id().clone()));
    points.pass_at_once(AwaitPoint::Beginning);
    let mut driven = Driven { turn: Some(turn), points };
    let outcome = match driven.stop_if_due() {
        Some(outcome) => outcome,
        None => timeout(LONGEST, poll_fn(|cx| driven.poll(cx))).await.unwrap_or(Outcome::Stuck),
    };
    points.record(Event::TurnEnded(outcome));
    if matches!(outcome, Outcome::Completed | Outcome::Failed(_)) {
        driven.check_after_the_end().await;
    }
    drop(driven);
    points.end();
    let_spawned_work_show().await;
    outcome
}

/// Lets spawned work of the turn continue while no turn runs, so that its points are recorded as late.
async fn let_spawned_work_show() {
    if Handle::current().metrics().num_alive_tasks() > 0 {
        for _ in 0..YIELDS {
            yield_now().await;
        }
    }
}

struct Driven<'a> {
    turn: Option<TurnStream>,
    points: &'a AwaitPoints,
}

impl Driven<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let outcome = match self.poll_turn(cx) {
                Err(_) => Some(Outcome::Panicked),
                Ok(Poll::Pending) => match self.stop_if_due() {
                    // A cancelled turn is polled again at once.
                    None if !self.points.was_released() => return Poll::Pending,
                    outcome => outcome,
                },
                Ok(Poll::Ready(item)) => self.take(item).or_else(|| self.stop_if_due()),
            };
            if let Some(outcome) = outcome {
                return Poll::Ready(outcome);
            }
        }
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> std::thread::Result<Poll<Option<Result<Chunk>>>> {
        let Some(turn) = &mut self.turn else { return Ok(Poll::Ready(None)) };
        catch_unwind(AssertUnwindSafe(|| Pin::new(turn).poll_next(cx)))
    }

    /// Records an item for the reader. Returns how the turn ended, if it has.
    fn take(&self, item: Option<Result<Chunk>>) -> Option<Outcome> {
        let chunk = match item {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Some(Outcome::Failed(error.kind())),
            None => return Some(Outcome::Stopped),
        };
        let completed = chunk.completed().is_some();
        self.points.record(Event::Delivered(chunk));
        if completed {
            return Some(Outcome::Completed);
        }
        self.points.pass_at_once(AwaitPoint::Reader);
        None
    }

    fn stop_if_due(&mut self) -> Option<Outcome> {
        match self.points.take_stop()? {
            Fault::Drop(mode) => {
                // Removes the turn from the field and drops it.
                drop(self.turn.take().map(|turn| turn.with_on_drop(mode)));
                Some(Outcome::Dropped)
            }
            Fault::Kill => {
                self.turn = None;
                Some(Outcome::Killed)
            }
            Fault::Cancel(mode) => {
                if let Some(turn) = &self.turn {
                    turn.handle().cancel(mode);
                }
                self.points.release();
                None
            }
            _ => None,
        }
    }

    /// Records a chunk that follows the end of the turn, which must not happen.
    async fn check_after_the_end(&mut self) {
        if let Ok(Poll::Ready(Some(Ok(chunk)))) = poll_fn(|cx| Poll::Ready(self.poll_turn(cx))).await {
            self.points.record(Event::Delivered(chunk));
        }
    }
}
