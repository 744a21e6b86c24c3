//! `Shown`: the text that a reader received of a round that did not end, which memory must keep (law K3).

use std::num::NonZeroUsize;

use advisor_tests::prelude::*;

use crate::state_machine::operation::How;
use crate::state_machine::reading::{Over, Reading};
use crate::state_machine::words::{of_log, of_messages};
use crate::state_machine::world::{Broken, Standing, World, key};

/// The text that a reader received of a round that did not end. Memory must keep it: law K3.
pub(crate) struct Shown {
    by: usize,
    /// The number of the turn among those that were submitted.
    nth: usize,
    text: String,
}

impl World {
    /// Notes the text of a turn that ended for its reader without an answer.
    pub(crate) fn note_shown(&mut self, by: usize, nth: usize, reading: &Reading) {
        let text = reading.shown.clone();
        let own = &self.told.turns[nth].id;
        let is_own = |entry: &Entry| entry.turn == *own;
        let log = &self.told.log;
        let is_followed = log.iter().any(is_own) && !log.last().is_some_and(is_own);
        // Of a conversation that was deleted meanwhile nothing is left; whoever has followed has closed the turn,
        // and whoever took its lease will.
        let is_lost = reading.run.outdated_version().is_some() || reading.may_be_fenced || is_followed;
        if !text.is_empty() && !is_lost {
            self.told.shown.push(Shown { by, nth, text });
        }
    }

    /// A turn is stopped so.
    pub(crate) async fn note_stop(&mut self, stopped: &Standing, how: How) -> Result<(), Broken> {
        let Standing { by, nth, ref reading } = *stopped;
        match how {
            How::Close | How::CloseAtOnce => self.note_shown(by, nth, reading),
            How::Rollback => {
                let log = self.log_of(&key()).await?;
                let turn = &mut self.told.turns[nth];
                // The answer of tools is in the log, but nobody is shown its text.
                turn.is_undone |= reading.shown.ends_with(&turn.said) || is_ended_in(&log, &turn.id);
                self.told.shown.retain(|shown| shown.nth != nth);
            }
            How::Kill => self.forget_shown_by(by),
            How::Finish | How::Stand => {}
        }
        Ok(())
    }

    /// Notes a failed turn. A turn that another process has overtaken leaves its shown text to that process.
    pub(crate) fn note_failure(&mut self, by: usize, nth: usize, reading: &Reading, over: &Over) {
        if !over.is_passed() {
            self.note_shown(by, nth, reading);
        }
    }

    /// Forgets the shown text that only this process had in memory. It is lost, or another process closes it.
    pub(crate) fn forget_shown_by(&mut self, by: usize) {
        let log = &self.told.log;
        let turns = &self.told.turns;
        let is_stored = |shown: &Shown| is_in_log(log, &turns[shown.nth].id, &shown.text);
        self.told.shown.retain(|shown| shown.by != by || is_stored(shown));
    }

    /// Checks that shown text is in the log, or in the transcript of the process that showed it.
    pub(crate) async fn check_shown(&mut self) -> Result<(), Broken> {
        for (by, is_active) in self.active.into_iter().enumerate() {
            if is_active {
                self.forget_shown_by(1 - by);
                if self.setup.leases
                    && let Some(standing) = self.standing.as_mut().filter(|standing| standing.by != by)
                {
                    standing.reading.may_be_fenced = true;
                }
            }
        }
        for shown in &self.told.shown {
            let turn = &self.told.turns[shown.nth];
            if is_in_log(&self.told.log, &turn.id, &shown.text) {
                continue;
            }
            let memory = &self.processes[shown.by].memory;
            let transcript = memory.transcript(&key()).await.unwrap().iter().cloned().collect();
            let page = memory.turns(&key(), None, NonZeroUsize::MAX).await.unwrap();
            let of_page: Vec<_> = page.turns.into_iter().flat_map(|turn| turn.messages).collect();
            for told in [transcript, of_page] {
                if !is_told(&told, &turn.said, &shown.text) {
                    return Err(format!(
                        "K3: {:?} of {:?} was shown, but the log is {}, and process {} tells {}",
                        shown.text,
                        turn.said,
                        of_log(&self.told.log),
                        shown.by,
                        of_messages(&told)
                    ));
                }
            }
        }
        Ok(())
    }
}

fn is_in_log(log: &[Entry], turn: &TurnId, text: &str) -> bool {
    let holds = |kind: &EntryKind| match kind {
        EntryKind::Message(message) => message.role() == Role::Assistant && message.text().contains(text),
        EntryKind::TurnEnded(TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) => {
            partial.contains(text)
        }
        _ => false,
    };
    log.iter().filter(|entry| entry.turn == *turn).any(|entry| holds(&entry.kind))
}

fn is_ended_in(log: &[Entry], turn: &TurnId) -> bool {
    let is_end = |entry: &Entry| matches!(&entry.kind, EntryKind::TurnEnded(TurnEnd::Completed(_)));
    log.iter().any(|entry| entry.turn == *turn && is_end(entry))
}

fn is_told(transcript: &[Message], said: &str, text: &str) -> bool {
    let own = transcript.iter().skip_while(|message| message.text() != said);
    let mut answers = own.skip(1).take_while(|message| message.role() != Role::User);
    answers.any(|message| message.text().contains(text))
}
