//! `log`: makes the log of a conversation from a script; `turns` divides a log into its turns.
//!
//! A step is a letter, and each is an entry; `uc12r1r2a.` is a complete turn:
//!
//! - `u` `a` `s`: a user message, an answer, a system message. `e` `q`: an answer of white space, of reasoning only.
//! - `c12` `r1`: an answer that calls 1 and 2, the result of call 1.
//! - `y` `z`: an ephemeral user message, an ephemeral answer that calls 1.
//! - `b01`: the start of the call at position 0, which is call 1.
//! - `.` `h` `x`: the end of a turn: complete, with client-side calls, rolled back.
//! - `i1` `f1`: the end of an interrupted, of a failed turn; 0 without shown text, 1 with text, 2 with white space.
//! - `m` `?` `*`: a summary, an entry of an unknown kind, a damaged entry.
//! - `/2`: no entry; the following ones are of turn 2.

use advisor_core::{
    Block, BlockContent, CallKey, CallStart, FinishReason, Message, Role, ToolCall, ToolResult, TurnEnd,
    TurnId,
};
use conversation_store::{Entry, EntryKind};
use serde_json::json;

use crate::Script;

/// The highest number of entries, so that no input takes long.
const MOST: usize = 200;

/// Returns the log of a script: each letter is an entry, as listed above.
///
/// No turn has two user messages in a row, since repair keeps repeated messages of a caller.
#[must_use]
pub fn log(script: &mut Script<'_>) -> Vec<Entry> {
    let mut log: Vec<Entry> = Vec::new();
    let mut turn = turn_of(0);
    let mut last = None;
    while let Some(letter) = script.letter(b"/uaceqrsyz.hifxbm?*") {
        if letter == b'/' {
            turn = turn_of(script.number() % 6);
            continue;
        }
        let kind = kind(letter, &turn, script);
        last = last.filter(|_| log.last().is_some_and(|entry| entry.turn == turn));
        let role = match &kind {
            EntryKind::Message(message) if is_remembered(message) => Some(message.role()),
            EntryKind::TurnEnded(_) => None,
            _ => last,
        };
        let is_message = matches!(&kind, EntryKind::Message(message) if is_remembered(message));
        if is_message && role == Some(Role::User) && last == role {
            continue;
        }
        last = role;
        log.push(Entry::new(log.len() as u64 + 1, turn.clone(), kind));
        if log.len() == MOST {
            break;
        }
    }
    log
}

/// The turns of a log: entries of one turn that stand together.
pub fn turns(log: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    log.chunk_by(|one, next| one.turn == next.turn)
}

fn turn_of(number: usize) -> TurnId {
    TurnId::new(&format!("turn-{number}")).expect("a short name")
}

fn is_remembered(message: &Message) -> bool {
    message.role() != Role::System && !message.is_ephemeral()
}

fn kind(letter: u8, turn: &TurnId, script: &mut Script<'_>) -> EntryKind {
    let message = match letter {
        b'u' => Message::user("And then?"),
        b'a' => Message::assistant("Then it rained."),
        b'c' => calls(script.digits(4)),
        b'e' => Message::assistant(" \n"),
        b'q' => Message::assistant_blocks(vec![Block::new(BlockContent::Reasoning("Hm.".into()))]),
        b'r' => result(script),
        b's' => Message::system("Be brief."),
        b'y' => Message::user("Only for now.").ephemeral(),
        b'z' => calls(b"1").ephemeral(),
        _ => return other_kind(letter, turn, script),
    };
    EntryKind::Message(message)
}

fn other_kind(letter: u8, turn: &TurnId, script: &mut Script<'_>) -> EntryKind {
    let mut partial = || script.pick(&["", "It was a", " "]).into();
    match letter {
        b'.' => EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)),
        b'h' => EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::ToolCalls)),
        b'i' => EntryKind::TurnEnded(TurnEnd::Interrupted { partial: partial() }),
        b'f' => EntryKind::TurnEnded(TurnEnd::Failed { partial: partial() }),
        b'x' => EntryKind::TurnEnded(TurnEnd::RolledBack),
        b'b' => {
            let key = CallKey::new(turn.clone(), 1, script.number() as u32);
            EntryKind::CallStarted(CallStart::new(key, id(script.number())))
        }
        b'm' => EntryKind::Summary("It was a dark night.".into()),
        b'*' => EntryKind::Corrupt(b"half an en".to_vec()),
        _ => {
            let newer = json!({"format": 9, "kind": "mood", "value": "cheerful"});
            EntryKind::Unknown(newer.as_object().cloned().unwrap_or_default())
        }
    }
}

fn calls(ids: &[u8]) -> Message {
    let ids = if ids.is_empty() { b"1" } else { ids };
    let call = |digit: &u8| Block::from(ToolCall::new(id((digit - b'0').into()), "look", "{}"));
    Message::assistant_blocks(ids.iter().map(call).collect())
}

fn result(script: &mut Script<'_>) -> Message {
    let call = ToolCall::new(id(script.number()), "look", "");
    Message::tool(ToolResult::new(&call, vec!["Rain.".into()]))
}

fn id(number: usize) -> String {
    (number % 10).to_string()
}
