//! Checks of transcripts: valid requests, memory as the prompt, idempotent repair.

use advisor_core::{FinishReason, Message, Role, TurnEnd, TurnId};
use advisor_testkit::validate_transcript;
use chat_memory_advisor::{INTERRUPTED, repair};
use conversation_store::{Entry, EntryKind, NewEntry};

use super::broken_if;
use crate::crash::case_run::appended;
use crate::crash::{CaseRun, Event};
use crate::sent::{is_sent, written};

pub(super) fn requests_are_valid(run: &CaseRun) -> Result<(), String> {
    for event in run.events() {
        let Event::Asked { messages, .. } = event else { continue };
        let said: Vec<_> = messages.iter().filter(|message| message.role() != Role::System).collect();
        if let Some(defect) = validate_transcript(said.iter().copied()).first() {
            return Err(format!("{defect} in {}", written(said)));
        }
        broken_if(said.first().is_none_or(|first| first.role() != Role::User), || {
            format!("the first message is not from the user in {}", written(said))
        })?;
    }
    Ok(())
}

pub(super) fn memory_is_the_prompt(run: &CaseRun) -> Result<(), String> {
    let mut log = Vec::new();
    for event in run.events() {
        log.extend(numbered(appended(event), log.len()));
        let Event::Asked { messages, .. } = event else { continue };
        let mut repaired = repair(&log);
        // Repair treats the running turn as interrupted.
        if repaired.last().is_some_and(|last| last.role() == Role::Assistant && last.text() == INTERRUPTED) {
            repaired.pop();
        }
        let sent: Vec<_> = messages.iter().filter(|message| message.role() != Role::System).collect();
        let is_same = |(received, stored): (&&Message, &Message)| is_sent(received, stored);
        broken_if(sent.len() != repaired.len() || !sent.iter().zip(&repaired).all(is_same), || {
            format!("the model was sent {}, and memory has {}", written(sent), written(&repaired))
        })?;
    }
    Ok(())
}

pub(super) fn repairing_again_changes_nothing(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        let once = repair(&turn.log);
        if let Some(defect) = validate_transcript(&once).first() {
            return Err(format!("{defect} in the repaired log {}", written(&once)));
        }
        let again = repair(&as_one_turn(&once, &turn.id));
        broken_if(again != once, || format!("{} becomes {}", written(&once), written(&again)))?;
    }
    Ok(())
}

/// Returns a complete log with these messages.
fn as_one_turn(messages: &[Message], turn: &TurnId) -> Vec<Entry> {
    let kinds = messages.iter().cloned().map(EntryKind::Message);
    let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
    (1..).zip(kinds.chain([end])).map(|(seq, kind)| Entry::new(seq, turn.clone(), kind)).collect()
}

/// Returns new entries as they are in a log that already has `before` entries.
fn numbered(entries: &[NewEntry], before: usize) -> Vec<Entry> {
    let from = u64::try_from(before).unwrap_or(u64::MAX).saturating_add(1);
    (from..).zip(entries).map(|(seq, new)| Entry::new(seq, new.turn.clone(), new.kind.clone())).collect()
}
