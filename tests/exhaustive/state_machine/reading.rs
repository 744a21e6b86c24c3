//! `Reading`: reads a turn to its end or to a stop. `Over` is the outcome.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_chain::chain::Spawner;
use advisor_tests::prelude::*;
use futures::Stream;
use tokio::time::timeout;

use crate::state_machine::operation::{How, Stop};
use crate::state_machine::steps::{Run, Steps};

/// A turn that is being read.
pub(crate) struct Reading {
    turn: TurnStream,
    pub(crate) run: Run,
    /// The text that was shown of the round that runs.
    pub(crate) shown: String,
    /// It stood while another process was at work, which may have taken its lease: then it leaves no trace.
    pub(crate) may_be_fenced: bool,
    steps: Steps,
}

/// The outcome of a turn for its reader, or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// `Completed` came out, with this text.
    Completed(String),
    Failed(ErrorKind),
    /// It ended with neither.
    Ended,
    /// It has come to where it is to be stopped.
    Reached,
    /// Nothing happens to it, however long it is waited for.
    Waits,
}

impl Over {
    /// Returns whether another turn has closed this one: a turn of another process, or one that replaced an
    /// abandoned turn.
    pub(crate) fn is_passed(&self) -> bool {
        let Self::Failed(kind) = self else { return false };
        let of_others = matches!(kind, ErrorKind::StoreConflict { .. } | ErrorKind::Store);
        of_others || matches!(kind, ErrorKind::Fenced | ErrorKind::Cancelled)
    }
}

/// Longer than all times together for which anything waits.
const LONG: Duration = Duration::from_secs(600);

impl Reading {
    pub(crate) fn new(turn: TurnStream, steps: &Steps, stop: Option<Stop>) -> Self {
        let run = Run::default();
        run.stop_after(stop.map(|stop| stop.after));
        Self { turn, run, shown: String::new(), may_be_fenced: false, steps: steps.clone() }
    }

    /// Reads until the turn has ended, or as far as possible.
    pub(crate) async fn read(&mut self) -> Over {
        timeout(LONG, poll_fn(|cx| self.poll(cx))).await.unwrap_or(Over::Waits)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        loop {
            self.steps.are_of(Some(&self.run));
            let item = Pin::new(&mut self.turn).poll_next(cx);
            self.steps.are_of(None);
            if item.is_pending() && self.run.is_reached() {
                return Poll::Ready(Over::Reached);
            }
            match ready!(item) {
                Some(Ok(chunk)) => {
                    if let Some(response) = chunk.completed() {
                        return Poll::Ready(Over::Completed(response.text()));
                    }
                    self.note(&chunk);
                    if self.run.is_reached() {
                        return Poll::Ready(Over::Reached);
                    }
                }
                Some(Err(error)) => return Poll::Ready(Over::Failed(error.kind())),
                None => return Poll::Ready(Over::Ended),
            }
        }
    }

    fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::RoundCompleted(_) | Chunk::AttemptRestarted { .. } => self.shown.clear(),
            chunk => self.shown.push_str(chunk.text().unwrap_or_default()),
        }
    }

    /// Drops the turn, and waits for its remaining work.
    pub(crate) async fn drop_as(self, how: How) {
        let spawner = || Spawner::tokio(tokio::runtime::Handle::current());
        let turn = match how {
            How::Rollback => self.turn.with_on_drop(OnDrop::Rollback),
            How::CloseAtOnce => self.turn.with_spawner(spawner()),
            How::Finish => self.turn.with_spawner(spawner()).with_on_drop(OnDrop::FinishTurn),
            How::Close | How::Kill | How::Stand => self.turn,
        };
        let settled = turn.handle().settled();
        drop(turn);
        self.run.release();
        if matches!(how, How::CloseAtOnce | How::Finish) {
            // One that waits for another turn settles with that.
            let _ = timeout(LONG, settled).await;
        }
    }
}
