use advisor_core::{Error, Message, Record, Result, Role, Step, TurnEnd, TurnRecorder, async_trait};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::TurnMemory;
use crate::check::is_empty_answer;
use crate::repair::is_remembered;
use crate::seal::{Unfinished, seal};
use crate::turn_memory::Inner;
use crate::turn_state::{TurnState, Write};

/// What the loop and the root announce. What memory has stored already is recognised and not stored again.
#[async_trait]
impl TurnRecorder for TurnMemory {
    async fn record(&self, record: &Record) -> Result<()> {
        let mut state = self.0.state.lock().await;
        match (&mut *state, &record.step) {
            (Some(state), Step::End(end)) => self.0.record_end(state, record, end).await,
            (Some(state), step) => self.0.record_step(state, record, step).await,
            (None, Step::End(end)) => self.0.end_beginning(end).await,
            // Memory stands inside the loop and has not been asked yet: the message comes with the request.
            (None, _) => Ok(()),
        }
    }

    fn dropped(&self, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        let unfinished = self.0.stopped(end)?;
        self.0.registry.leave(&self.0.key, unfinished.clone());
        let memory = self.clone();
        let sealing = async move {
            if let Err(error) = memory.0.seal(&unfinished).await {
                tracing::warn!(
                    conversation = %memory.0.key,
                    turn = %memory.0.turn,
                    %error,
                    "a dropped turn is not closed yet; the next turn of the conversation closes it"
                );
            }
        };
        Some(sealing.boxed())
    }
}

impl Inner {
    async fn record_step(&self, state: &mut TurnState, record: &Record, step: &Step) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = state.prompt.add(new_messages(state, record));
        if *step == Step::Answer && record.messages.iter().all(is_empty_answer) {
            addition.note_empty_answer();
        }
        if addition.stored.is_empty() {
            state.prompt.take_over(addition);
            return Ok(());
        }
        let calls = record.messages.iter().any(|message| message.tool_calls().next().is_some());
        let write = match step {
            // After an answer without calls the model is asked again at once.
            Step::Answer => Write::new(record.round, "answer", addition).answering().covering(calls),
            Step::Results => Write::new(record.round, "results", addition).covering(false),
            _ => Write::new(record.round, "injected", addition),
        };
        self.begin_again(state)?;
        self.write(state, write).await
    }

    async fn record_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        let breaks_off = !matches!(end, TurnEnd::Completed(_));
        if breaks_off {
            state.ending = Some(state.end_in(record.round, end));
        }
        let outcome = self.write_end(state, record, end).await;
        if outcome.is_ok() {
            self.registry.stop(&self.key, &self.turn);
            self.registry.forget(&self.key, &self.turn);
        } else if breaks_off
            && let Some(left) = state.unfinished(&self.turn, &state.end_in(record.round, end))
        {
            self.registry.leave(&self.key, left);
        }
        outcome
    }

    async fn write_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = state.prompt.add(new_messages(state, record));
        if addition.stored.is_empty() && state.has_ended_before(end) {
            return Ok(());
        }
        if matches!(end, TurnEnd::Failed { .. } | TurnEnd::Interrupted { .. }) {
            addition.settle();
        }
        let end = state.end_in(record.round, end);
        self.write(state, Write::new(record.round, "end", addition).ending(end)).await
    }

    /// The turn ends while its beginning may or may not be written.
    async fn end_beginning(&self, end: &TurnEnd) -> Result<()> {
        match self.beginning(end) {
            Some(unfinished) => self.seal(&unfinished).await,
            None => Ok(()),
        }
    }

    /// What is left to be written of a turn that was dropped.
    fn stopped(&self, end: &TurnEnd) -> Option<Unfinished> {
        // Everything of the turn has stopped, so that nobody holds the lock; and if someone should, the
        // log is read before anything is written.
        match self.state.try_lock() {
            Ok(state) => match &*state {
                Some(state) => state.unfinished(&self.turn, end),
                None => self.beginning(end),
            },
            Err(_) => Some(Unfinished { turn: self.turn.clone(), end: end.clone(), unsure: None }),
        }
    }

    fn beginning(&self, end: &TurnEnd) -> Option<Unfinished> {
        let known = self.registry.unfinished(&self.key).into_iter().find(|known| known.turn == self.turn);
        known.map(|known| Unfinished { end: end.clone(), ..known })
    }

    async fn seal(&self, unfinished: &Unfinished) -> Result<()> {
        seal(&*self.store, &self.key, unfinished).await.map_err(Error::from)?;
        self.registry.forget(&self.key, &self.turn);
        Ok(())
    }
}

/// The messages of a record, without the answer that memory has stored for its round: that is as it was
/// before anyone outside changed it.
fn new_messages(state: &TurnState, record: &Record) -> Vec<Message> {
    let is_stored = |message: &Message| {
        // What closes a turn whose last answer made calls is an answer of its own.
        let same_answer =
            record.step == Step::Answer || state.ended.is_some() || message.tool_calls().next().is_some();
        message.role() == Role::Assistant && state.answered == record.round && same_answer
    };
    let is_new = |message: &&Message| is_remembered(message) && !is_stored(message);
    record.messages.iter().filter(is_new).cloned().collect()
}
