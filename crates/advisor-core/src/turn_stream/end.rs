//! All ends of a turn: `complete`, `fail`, `cancel`, `end_after_panic`, and `Drop for TurnStream`.
//!
//! The root writes nothing into a conversation. It tells the turn's recorders.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use message_aggregator::{ChatResponse, Chunk};
use tracing::Span;

use crate::turn_stream::control::TurnControl;
use crate::turn_stream::{Ending, State};
use crate::{
    Error, ErrorKind, OnDrop, Record, Result, Step, TurnEnd, TurnRecorder, TurnStream, drop_caught, spans,
};

/// The ways in which a turn ends: with an answer, an error, a cancellation, a drop.
impl TurnStream {
    /// Stops everything and records the end; the caller receives `error` afterwards.
    pub(super) fn end_with(&mut self, end: TurnEnd, error: Error) {
        let last = Err(self.noting_emission(error));
        let record = Record::new(self.delivered.round, Step::End(end.clone()), Vec::new());
        self.record_last(vec![record], end, last);
    }

    fn noting_emission(&self, error: Error) -> Error {
        let are_used = || self.turn.decisions().is_some_and(|decisions| decisions.are_used());
        if self.delivered.any || are_used() { error.mark_emitted() } else { error }
    }

    /// Drops the inner stream or future. A panic in a drop does not prevent the end of the turn.
    fn release(&mut self) {
        drop_caught(std::mem::replace(&mut self.state, State::Ended));
    }

    /// Records the remaining records in order; the last one is the end of the turn.
    fn record_last(&mut self, records: Vec<Record>, end: TurnEnd, last: Result<ChatResponse>) {
        // All work of the turn stops before its end is written.
        self.release();
        self.beside.leave(&self.turn.side_tasks);
        let turn = Arc::clone(&self.turn);
        let recording = async move {
            for record in &records {
                turn.record(record).await?;
            }
            Ok(())
        };
        self.state = State::Ending(recording.boxed(), Box::new(Ending { end: Some(end), last }));
    }

    /// Records the end of an answered turn where no tool loop did so. Either the chain has none, or an advisor
    /// around it has ended the turn.
    pub(super) fn complete(&mut self, response: ChatResponse) {
        let results = self.turn.results_of_interrupted(response.message());
        let mut records: Vec<_> =
            results.map(|(round, results)| Record::new(round, Step::Results, results)).into_iter().collect();
        let end = TurnEnd::Completed(response.finish.reason.clone());
        let answer = Some(response.message()).filter(|message| !message.is_empty_answer()).cloned();
        records.push(Record::new(response.round(), Step::End(end.clone()), answer.into_iter().collect()));
        self.record_last(records, end, Ok(response));
    }

    /// Returns the response with the messages of the turn, if no tool loop has set them.
    pub(super) fn with_transcript(&self, mut response: ChatResponse) -> ChatResponse {
        if !response.transcript.is_empty() {
            return response;
        }
        let mut transcript = self.turn.transcript();
        let results = self.turn.results_of_interrupted(response.message());
        transcript.extend(results.into_iter().flat_map(|(_, results)| results));
        let is_last = transcript.last().is_some_and(|last| last.is_same(response.message()));
        if !is_last && !response.message().is_empty_answer() {
            transcript.push(response.message().clone());
        }
        response.transcript = transcript;
        response
    }

    pub(super) fn cancel(&mut self, mode: OnDrop) {
        self.on_drop = mode;
        let error = Error::new(ErrorKind::Cancelled, "the turn was cancelled");
        if mode == OnDrop::FinishTurn && self.spawner.is_some() {
            let ending = Ending { end: None, last: Err(self.noting_emission(error)) };
            self.detach();
            let nothing_to_record = futures::future::ready(Ok(())).boxed();
            self.state = State::Ending(nothing_to_record, Box::new(ending));
            return;
        }
        let end = self.early_end(mode);
        self.end_with(end, error);
    }

    /// Ends the turn because a side task returned this error.
    pub(super) fn interrupt(&mut self, error: Error) {
        match error.kind() {
            ErrorKind::Cancelled => {
                let end = self.early_end(OnDrop::KeepPartial);
                self.end_with(end, error);
            }
            _ => self.fail(error),
        }
    }

    pub(super) fn early_end(&mut self, mode: OnDrop) -> TurnEnd {
        match mode {
            OnDrop::Rollback => TurnEnd::RolledBack,
            _ => TurnEnd::Interrupted { partial: self.delivered.take_text() },
        }
    }

    /// Continues the turn in the spawner, without this stream.
    pub(super) fn detach(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let Some(spawner) = &self.spawner else { return };
        let rest = Self {
            state,
            turn: Arc::clone(&self.turn),
            control: std::mem::replace(&mut self.control, TurnControl::new()),
            delivered: std::mem::take(&mut self.delivered),
            on_drop: OnDrop::KeepPartial,
            spawner: Some(spawner.clone()),
            beside: std::mem::take(&mut self.beside),
            span: self.span.clone(),
            in_poll: false,
        };
        spawner.spawn(
            async move {
                // No reader is left for an error; the record of the turn holds it.
                let _ = rest.call().await;
            }
            .boxed(),
        );
    }

    pub(super) fn fail(&mut self, error: Error) {
        let partial = self.delivered.take_text();
        let end = match error.kind() {
            ErrorKind::InvalidInput if partial.is_empty() => TurnEnd::Refused,
            _ => TurnEnd::Failed { partial },
        };
        self.end_with(end, error);
    }

    /// Ends the turn after a panic in a poll: the inner stream must not be polled again, so the end is recorded.
    /// If the recording itself panicked, returns the error at once.
    pub(super) fn end_after_panic(&mut self) -> Option<Error> {
        let error = Error::new(ErrorKind::Advisor, "code of the chain panicked; the turn has ended");
        match self.state {
            State::Opening(_) | State::Live { .. } => self.fail(error),
            State::Ending(..) => return self.end(Err(error)).err(),
            State::Waiting(_) | State::Last(_) | State::Ended => {}
        }
        None
    }

    pub(super) fn end(&mut self, recorded: Result<()>) -> Result<Chunk> {
        let State::Ending(recording, ending) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(Error::new(ErrorKind::Unfinished, "a turn ended twice"));
        };
        drop_caught(recording);
        let Ending { end, last } = *ending;
        match (&end, &recorded) {
            // Recording failed: hand the end over, as after a drop, so that it is not lost.
            (Some(end), Err(_)) => self.hand_over(end),
            _ => self.control.settle(),
        }
        let item = match (last, recorded) {
            (Ok(response), Ok(())) => Ok(Chunk::Completed(response)),
            (Ok(response), Err(error)) => Err(error.or_partial(response).mark_emitted()),
            // The caller needs the reason of the failure, not the failure to record it.
            (Err(error), _) => Err(error),
        };
        spans::note_turn(&self.span, &item);
        self.span = Span::none();
        item
    }

    /// Hands the end to the recorders without waiting, and settles when their remaining work has run.
    fn hand_over(&self, end: &TurnEnd) {
        let settled = Settle(Arc::clone(&self.control));
        let round = self.delivered.round;
        let dropped = |recorder: &Arc<dyn TurnRecorder>| {
            // A recorder that panics does not prevent the others.
            let left = catch_unwind(AssertUnwindSafe(|| recorder.dropped(round, end)));
            left.unwrap_or_else(|panic| {
                drop_caught(panic);
                None
            })
        };
        let left: Vec<_> = self.turn.recorders().iter().filter_map(dropped).collect();
        if let Some(spawner) = self.spawner.as_ref().filter(|_| !left.is_empty()) {
            spawner.spawn(
                async move {
                    join_all(left).await;
                    drop(settled);
                }
                .boxed(),
            );
        }
    }

    pub(super) fn settle(&mut self) {
        // Side tasks, such as the renewal of a lease, end after the work that they go with, as at every other end.
        self.release();
        self.beside.leave(&self.turn.side_tasks);
        self.span = Span::none();
        self.control.settle();
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        let wanted = match &mut self.state {
            State::Ended => return,
            // The caller has not seen the end yet, so it can still be undone.
            State::Last(_) if self.on_drop == OnDrop::Rollback => Some(TurnEnd::RolledBack),
            State::Last(_) => return self.control.settle(),
            // The turn never started, so there is no end to record.
            State::Waiting(_) => return self.control.settle(),
            State::Ending(_, ending) => match ending.end.take() {
                // As above.
                Some(_) if self.on_drop == OnDrop::Rollback => Some(TurnEnd::RolledBack),
                // The end that was being recorded still applies.
                Some(end) => Some(end),
                None => return self.control.settle(),
            },
            _ => None,
        };
        // After a panic the turn cannot be finished.
        let can_go_on = wanted.is_none() && !self.in_poll;
        if can_go_on && self.on_drop == OnDrop::FinishTurn && self.spawner.is_some() {
            return self.detach();
        }
        let end = wanted.unwrap_or_else(|| self.early_end(self.on_drop));
        // All work of the turn stops here, before the recorders learn of its end.
        self.release();
        self.beside.leave(&self.turn.side_tasks);
        self.hand_over(&end);
    }
}

/// Guard that marks a turn as settled when dropped, also if a spawner discards its work.
struct Settle(Arc<TurnControl>);

impl Drop for Settle {
    fn drop(&mut self) {
        self.0.settle();
    }
}
