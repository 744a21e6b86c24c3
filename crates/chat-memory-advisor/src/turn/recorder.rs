//! `TurnRecorder for TurnMemory`: stores announced messages, call starts and turn ends; handles drops.

use std::sync::Arc;

use advisor_core::{
    CallStart, Error, ErrorKind, Message, Record, Result, Role, Step, TurnEnd, TurnRecorder, async_trait,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::transcript::repair::{has_calls, is_answer, is_remembered};
use crate::turn::prompt::Addition;
use crate::turn::start_plan::StartOutcome;
use crate::turn::state::{TurnState, Write};
use crate::turn::{Stage, TurnMemory, TurnMemoryState};
use conversation_store::RoundStep;

/// Records the announcements of the loop and the root. Memory recognises messages that it has stored, and does not
/// store them again.
#[async_trait]
impl TurnRecorder for TurnMemory {
    async fn record(&self, record: &Record) -> Result<()> {
        let mut stage = self.0.stage.lock().await;
        let said = match (&mut *stage, &record.step) {
            (Stage::Retired, _) => return Ok(()),
            (Stage::Answered, _) => return refuse_calls(record),
            // The request will contain the message.
            (Stage::Waiting(said) | Stage::Starting(said), Step::Injected) => {
                await_injected(said, &record.messages);
                return Ok(());
            }
            (Stage::Waiting(_), Step::End(TurnEnd::RolledBack)) => return Ok(()),
            // A turn that failed to begin is not begun again just to record its end.
            (Stage::Starting(_), Step::End(end)) if breaks_off(end) => {
                return self.0.end_unconfirmed_start(end).await;
            }
            (Stage::Waiting(_) | Stage::Starting(_), _) if self.0.has_undecided_calls() => {
                return self.0.record_undecided(record).await;
            }
            (Stage::Waiting(said) | Stage::Starting(said), _) => said.clone(),
            (Stage::Running(_), _) => Vec::new(),
        };
        // An announcement cannot wait for the end of another turn.
        let StartOutcome::Asking(state) = self.0.ensure_started(&mut stage, said, None).await? else {
            return refuse_calls(record);
        };
        match &record.step {
            Step::End(end) => {
                let outcome = self.0.record_end(state, record, end).await;
                if outcome.is_ok() {
                    self.0.summarize_later(state.turns);
                }
                outcome
            }
            Step::Started(starts) => self.0.record_starts(state, record.round, starts).await,
            step => self.0.record_step(state, record, step).await,
        }
    }

    fn dropped(&self, round: u32, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        let unfinished = self.0.stopped(round, end).map(|turn| self.0.register(turn));
        self.0.release_guard();
        let has_work = unfinished.is_some() || self.0.holds_lease();
        let memory = Arc::clone(&self.0);
        has_work.then(|| async move { memory.clean_up(unfinished).await }.boxed())
    }
}

impl TurnMemoryState {
    async fn record_step(&self, state: &mut TurnState, record: &Record, step: &Step) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = new_messages(state, record);
        if *step == Step::Answer && record.messages.iter().all(Message::is_empty_answer) {
            addition.note_empty_answer();
        }
        if addition.stored.is_empty() {
            state.prompt.apply(addition);
        } else {
            let write = match step {
                Step::Answer => Write::new(record.round, RoundStep::Answer, addition).answering(),
                Step::Results => {
                    Write::new(record.round, RoundStep::Results, addition).with_message_round(record.round)
                }
                _ => Write::new(record.round, RoundStep::Injected, addition),
            };
            self.reopen(state).await?;
            self.write(state, write).await?;
        }
        if *step == Step::Answer {
            state.prompt.start_calls();
        }
        Ok(())
    }

    /// Records that calls that must not run twice are about to run. When memory begins the turn, it reports to the
    /// loop which calls were started before. Starting one of them again is an error.
    async fn record_starts(&self, state: &mut TurnState, round: u32, starts: &[CallStart]) -> Result<()> {
        self.catch_up(state).await?;
        if let Some(known) = starts.iter().find(|start| state.started.contains(&start.key)) {
            let text = format!("the call {} was started before, and its tool must not run twice", known.key);
            return Err(Error::new(ErrorKind::StoreConflict { current: state.version.as_u64() }, text));
        }
        self.reopen(state).await?;
        let write = Write::starts(round, starts.to_vec(), state.prompt.unchanged());
        self.write(state, write).await
    }

    async fn record_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        if breaks_off(end) {
            state.break_off();
        }
        let outcome = self.write_end(state, record, end).await;
        if outcome.is_ok() {
            self.registry.unfinished.forget_turn(&self.key, &self.turn);
        } else if breaks_off(end)
            && let Some(unfinished) = state.unfinished(&self.turn, record.round, end)
        {
            self.register(unfinished);
        }
        if outcome.is_ok() || breaks_off(end) {
            self.release(&state.guard).await;
        }
        outcome
    }

    async fn write_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = new_messages(state, record);
        if addition.stored.is_empty() && state.has_ended_before(record.round, end) {
            return Ok(());
        }
        if matches!(end, TurnEnd::Failed { .. } | TurnEnd::Refused | TurnEnd::Interrupted { .. }) {
            addition.settle();
        }
        let end = state.end_in(record.round, end);
        let answers = addition.stored.last().is_some_and(is_answer);
        // Without an answer, the messages are at most results of the answer before.
        let last_round = state.answered.map(|answered| answered.round);
        let write = Write::new(record.round, RoundStep::End, addition).with_message_round(last_round);
        let write = write.with_pending(record.pending.clone()).ending(end);
        self.write(state, if answers { write.answering() } else { write }).await
    }

    /// Ends a turn whose start may or may not be written.
    async fn end_unconfirmed_start(&self, end: &TurnEnd) -> Result<()> {
        let Some(unfinished) = self.unconfirmed_start(end) else {
            self.release_lease().await;
            return Ok(());
        };
        let unfinished = self.register(unfinished);
        let closed = self.registry.try_close(&*self.store, &self.key, &unfinished, &self.measure.texts).await;
        self.release_lease().await;
        // Until here, a drop of the turn may bring another end.
        self.registry.note_closed(&self.key, &unfinished, closed).map_err(Error::from)
    }

    /// Registers the turn as stopped, with its end still to be written.
    fn register(&self, turn: UnfinishedTurn) -> UnfinishedTurn {
        self.registry.unfinished.register(&self.key, UnfinishedTurn { token: self.lease.token(), ..turn })
    }

    /// Returns the unwritten rest of a turn that was dropped.
    fn stopped(&self, round: u32, end: &TurnEnd) -> Option<UnfinishedTurn> {
        // The whole turn has stopped, so the lock should be free. If it is not, the log is read before anything is
        // written.
        let Ok(stage) = self.stage.try_lock() else {
            let silent = UnfinishedTurn::new(self.turn.clone(), None, Vec::new());
            return Some(UnfinishedTurn { end: end.clone(), ..silent });
        };
        let Stage::Running(state) = &*stage else { return self.unconfirmed_start(end) };
        state.unfinished(&self.turn, round, end)
    }

    /// Releases the guard, so that other turns of the conversation may begin.
    fn release_guard(&self) {
        if let Ok(stage) = self.stage.try_lock()
            && let Stage::Running(state) = &*stage
        {
            state.guard.release();
        }
    }

    /// Returns the turn whose start may be written. An end left by an earlier attempt of the same turn stays as it
    /// is, unless it is silent or the turn is rolled back.
    fn unconfirmed_start(&self, end: &TurnEnd) -> Option<UnfinishedTurn> {
        let known =
            self.registry.unfinished.turns_in(&self.key).into_iter().find(|known| known.turn == self.turn)?;
        let is_its_end = known.is_silent() || *end == TurnEnd::RolledBack;
        Some(if is_its_end { UnfinishedTurn { end: end.clone(), ..known } } else { known })
    }

    /// Closes a turn that was dropped, and releases its lease.
    async fn clean_up(&self, unfinished: Option<UnfinishedTurn>) {
        if let Some(unfinished) = unfinished {
            let closed = self.registry.close(&*self.store, &self.key, &unfinished, &self.measure.texts).await;
            if let Err(error) = closed {
                tracing::warn!(
                    conversation = %self.key,
                    turn = %self.turn,
                    %error,
                    "a dropped turn is not closed yet; the next turn of the conversation closes it"
                );
            }
        }
        self.release_lease().await;
    }
}

/// Adds messages that a hook injected before the first request; the request contains them, too.
fn await_injected(said: &mut Vec<Message>, messages: &[Message]) {
    for message in messages {
        if !said.iter().rev().any(|known| known.is_same(message)) {
            said.push(message.clone());
        }
    }
}

/// Rejects calls of a turn that was answered before. Announcing its answer again is allowed; running its calls is
/// not.
fn refuse_calls(record: &Record) -> Result<()> {
    let goes_on = match &record.step {
        Step::Answer => record.messages.iter().any(has_calls),
        Step::Results | Step::Started(_) => true,
        _ => false,
    };
    if goes_on {
        return Err(Error::configuration(
            "the turn was answered when it was submitted before, and its calls were left to the caller; answer them in a new turn",
        ));
    }
    Ok(())
}

fn breaks_off(end: &TurnEnd) -> bool {
    !matches!(end, TurnEnd::Completed(_))
}

/// Returns the new messages of a record. An announced answer is the one that the turn continues with. If memory
/// stored another answer last, or none, the announced one is new, even if it was stored before.
fn new_messages(state: &TurnState, record: &Record) -> Addition {
    let announces = matches!(record.step, Step::Answer | Step::End(_));
    let is_known = |message: &Message| match message.role() {
        Role::Assistant if announces => is_last_answer(state, record, message),
        _ => state.prompt.knows(message),
    };
    let is_new = |message: &&Message| is_remembered(message) && !is_known(message);
    state.prompt.add_again(record.messages.iter().filter(is_new).cloned())
}

/// Checks whether this is the answer that memory stored last. If an outer advisor changed the answer, memory keeps
/// the model's version.
fn is_last_answer(state: &TurnState, record: &Record, message: &Message) -> bool {
    let Some(last) = state.answered else { return false };
    // An answer that closes a turn after an answer with calls is a separate one.
    let of_model = record.step == Step::Answer || has_calls(message) || !last.has_calls;
    of_model && last.round == record.round && state.prompt.calls().are_those_of(message)
}

#[cfg(test)]
mod tests;
