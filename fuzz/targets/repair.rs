//! Checks that any log gives a valid transcript, and that valid turns stay unchanged.
#![no_main]

use advisor_core::{FinishReason, Message, Role, TurnEnd, TurnId};
use advisor_fuzz::{Script, log, turns};
use advisor_testkit::{TranscriptError, validate_transcript};
use chat_memory_advisor::repair;
use conversation_store::{Entry, EntryKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    let log = log(&mut Script::new(script));
    let repaired = repair(&log);
    assert_eq!(validate_transcript(&repaired), [], "what is repaired is valid");
    assert_eq!(repair(&log), repaired, "the same log gives the same transcript");

    assert_eq!(repair(&as_turns([repaired.as_slice()])), repaired, "repairing it again changes nothing");
    let apart = repaired.split_inclusive(ends_turn);
    assert_eq!(repair(&as_turns(apart)), repaired, "nor does it if every answer ends a turn");

    let asked: Vec<_> = turns(&log).filter(|turn| !is_rolled_back(turn)).flat_map(remembered).collect();
    let by_user = |message: &&Message| message.role() == Role::User;
    assert!(
        asked.iter().copied().filter(by_user).eq(repaired.iter().filter(by_user)),
        "what the user said is all there, in its order"
    );
    if turns(&log).all(is_valid) {
        assert!(asked.iter().copied().eq(&repaired), "what is valid stays as it is");
    }
    check_places(&log);
});

/// Checks that every position in a defect is a position in the transcript or its end.
fn check_places(log: &[Entry]) {
    let messages: Vec<_> = log.iter().filter_map(|entry| entry.kind.as_message()).collect();
    for defect in validate_transcript(messages.iter().copied()) {
        let (TranscriptError::MissingResult { at, .. }
        | TranscriptError::ResultOutOfOrder { at, .. }
        | TranscriptError::OrphanResult { at, .. }
        | TranscriptError::EmptyAnswer { at }
        | TranscriptError::TwoUserMessages { at }) = defect
        else {
            continue;
        };
        assert!(at <= messages.len(), "{at} of {}", messages.len());
    }
}

fn is_remembered(message: &&Message) -> bool {
    message.role() != Role::System && !message.is_ephemeral()
}

fn remembered(turn: &[Entry]) -> impl Iterator<Item = &Message> {
    turn.iter().filter_map(|entry| entry.kind.as_message()).filter(is_remembered)
}

/// Returns whether the last end, without a message after it, is a rollback.
fn is_rolled_back(turn: &[Entry]) -> bool {
    let ends = |entry: &&Entry| matches!(entry.kind, EntryKind::TurnEnded(_) | EntryKind::Message(_));
    let last = turn.iter().rev().find(ends);
    last.is_some_and(|entry| entry.kind == EntryKind::TurnEnded(TurnEnd::RolledBack))
}

/// Returns whether the turn needs no repair: its messages are valid, it ends with an answer, and it is
/// complete.
fn is_valid(turn: &[Entry]) -> bool {
    let ends = |entry: &&Entry| matches!(entry.kind, EntryKind::TurnEnded(_));
    let last = turn.iter().rev().find(|entry| ends(entry) || entry.kind.as_message().is_some());
    let completed =
        last.is_some_and(|entry| matches!(entry.kind, EntryKind::TurnEnded(TurnEnd::Completed(_))));
    let messages: Vec<_> = remembered(turn).collect();
    completed
        && turn.iter().filter(ends).count() == 1
        && validate_transcript(messages.iter().copied()).is_empty()
        && messages.last().is_some_and(|message| message.role() == Role::Assistant)
}

fn ends_turn(message: &Message) -> bool {
    message.role() == Role::Assistant && message.tool_calls().next().is_none()
}

/// A log of complete turns that say this.
fn as_turns<'a>(turns: impl IntoIterator<Item = &'a [Message]>) -> Vec<Entry> {
    let mut log = Vec::new();
    for (number, messages) in turns.into_iter().enumerate() {
        let turn = TurnId::new(&format!("again-{number}")).expect("a short name");
        let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
        for kind in messages.iter().cloned().map(EntryKind::Message).chain([end]) {
            log.push(Entry::new(log.len() as u64 + 1, turn.clone(), kind));
        }
    }
    log
}
