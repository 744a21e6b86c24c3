use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use message_aggregator::{ChatResponse, Chunk, Text};
use tracing::Span;

use crate::delivered::Delivered;
use crate::turn_control::TurnControl;
use crate::turn_stream::{LastItem, State};
use crate::{Error, ErrorKind, OnDrop, Record, Result, Step, TurnEnd, TurnStream};

/// The ways in which a turn ends: with an answer, an error, a cancellation, a drop.
impl TurnStream {
    /// Stops everything and records the end; the caller gets `error` afterwards.
    pub(crate) fn end_with(&mut self, end: TurnEnd, error: Error) {
        // Everything of the turn has stopped before its end is written.
        self.state = State::Ended;
        let record = Record::new(self.delivered.round(), Step::End(end), Vec::new());
        let error = if self.delivered.any() { error.after_emission() } else { error };
        self.record_end(record, LastItem::Failed(error));
    }

    pub(crate) fn record_end(&mut self, record: Record, last: LastItem) {
        let turn = Arc::clone(&self.turn);
        self.state = State::Ending(async move { turn.record(&record).await }.boxed(), Box::new(last));
    }

    /// The chain is done with the answer. Without a tool loop in it, nobody has told the recorders of the end.
    pub(crate) fn complete(&mut self, response: ChatResponse) {
        let end = TurnEnd::Completed(response.finish().reason.clone());
        let answer = Some(response.message()).filter(|message| !message.blocks().is_empty()).cloned();
        let record = Record::new(response.round(), Step::End(end), answer.into_iter().collect());
        self.record_end(record, LastItem::Completed(response));
    }

    pub(crate) fn cancel(&mut self, mode: OnDrop) {
        let error = Error::new(ErrorKind::Cancelled, "the turn was cancelled");
        if mode == OnDrop::FinishTurn && self.spawner.is_some() {
            let error = if self.delivered.any() { error.after_emission() } else { error };
            self.detach();
            let nothing_to_record = futures::future::ready(Ok(())).boxed();
            self.state = State::Ending(nothing_to_record, Box::new(LastItem::Failed(error)));
            return;
        }
        let end = self.early_end(mode);
        self.end_with(end, error);
    }

    pub(crate) fn early_end(&mut self, mode: OnDrop) -> TurnEnd {
        match mode {
            OnDrop::Rollback => TurnEnd::RolledBack,
            _ => TurnEnd::Interrupted { partial: self.delivered.take_text() },
        }
    }

    /// Lets the turn go on without this stream.
    pub(crate) fn detach(&mut self) {
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

    pub(crate) fn fail(&mut self, error: Error) {
        let partial = self.delivered.take_text();
        self.end_with(TurnEnd::Failed { partial }, error);
    }

    pub(crate) fn end(&mut self, recorded: Result<()>) -> Result<Chunk> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        self.settle();
        match (state, recorded) {
            (State::Ending(_, last), recorded) => match (*last, recorded) {
                (LastItem::Completed(response), Ok(())) => Ok(Chunk::Completed(response)),
                (LastItem::Completed(response), Err(error)) => {
                    Err(error.with_partial(response).after_emission())
                }
                // A record that fails here leaves the turn open, and the next one closes it; the caller
                // needs to know why the turn failed, not that.
                (LastItem::Failed(error), _) => Err(error),
            },
            _ => Err(Error::new(ErrorKind::Unfinished, "a turn ended twice")),
        }
    }

    pub(crate) fn settle(&mut self) {
        self.state = State::Ended;
        self.span = Span::none();
        self.control.settle();
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

impl Delivered {
    fn take_text(&mut self) -> Text {
        Text::from(self.take())
    }
}
