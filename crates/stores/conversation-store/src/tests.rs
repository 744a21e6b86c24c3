//! Logs for tests: literal and random.

use advisor_core::{
    Block, BlockContent, CallKey, CallStart, FinishReason, Message, ToolCall, ToolResult, TurnEnd, TurnId,
};
use proptest::prelude::*;

use crate::{Entry, EntryKind};

pub(crate) fn turn(name: &str) -> TurnId {
    TurnId::new(name).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn completed() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))
}

/// Builds a log of turns, each a name and the contents of its entries.
pub(crate) fn log(turns: &[(&str, Vec<EntryKind>)]) -> Vec<Entry> {
    let entries = turns.iter().flat_map(|(name, kinds)| kinds.iter().map(|kind| (turn(name), kind.clone())));
    (1..).zip(entries).map(|(seq, (turn, kind))| Entry::new(seq, turn, kind)).collect()
}

fn any_message() -> impl Strategy<Value = Message> {
    let call = |id: String| ToolCall::new(id, "f", "{}");
    prop_oneof![
        4 => "[a-c]{1,2}".prop_map(Message::user),
        3 => "[a-c]{1,2}".prop_map(Message::assistant),
        4 => prop::collection::vec("[1-3]", 1..4)
            .prop_map(move |ids| Message::assistant_blocks(ids.into_iter().map(|id| Block::from(call(id))).collect())),
        6 => "[1-3]".prop_map(move |id| Message::tool(ToolResult::new(&call(id), vec!["result".into()]))),
        1 => Just(Message::assistant(" \n")),
        1 => Just(Message::assistant_blocks(vec![Block::new(BlockContent::Reasoning("hm".into()))])),
        1 => Just(Message::system("s")),
        1 => Just(Message::user("e").ephemeral()),
    ]
}

/// Generates arbitrary entries without nested JSON.
pub(crate) fn any_kind() -> impl Strategy<Value = EntryKind> {
    let started = |(position, id): (u32, String)| {
        EntryKind::CallStarted(CallStart::new(CallKey::new(turn("t"), 1, position), id))
    };
    prop_oneof![
        12 => any_message().prop_map(EntryKind::Message),
        2 => Just(completed()),
        1 => Just(EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::ToolCalls))),
        2 => "[a-c]{0,2}".prop_map(|partial| EntryKind::TurnEnded(TurnEnd::Interrupted { partial: partial.into() })),
        1 => Just(EntryKind::TurnEnded(TurnEnd::Failed { partial: "p".into() })),
        1 => Just(EntryKind::TurnEnded(TurnEnd::Refused)),
        1 => Just(EntryKind::TurnEnded(TurnEnd::RolledBack)),
        3 => (0..3_u32, "[1-3]").prop_map(started),
        1 => Just(EntryKind::Summary("short".into())),
        1 => Just(EntryKind::Unknown(
            [("format".into(), 9.into()), ("kind".into(), "mood".into())].into_iter().collect(),
        )),
        1 => Just(EntryKind::Corrupt(b"half".into())),
    ]
}

/// Generates arbitrary logs.
pub(crate) fn any_log() -> impl Strategy<Value = Vec<Entry>> {
    let any_turn = (0..6_u32, prop::collection::vec(any_kind(), 0..8));
    prop::collection::vec(any_turn, 0..8).prop_map(|turns| {
        let turns: Vec<_> = turns.into_iter().map(|(name, kinds)| (format!("t{name}"), kinds)).collect();
        log(&turns.iter().map(|(name, kinds)| (name.as_str(), kinds.clone())).collect::<Vec<_>>())
    })
}
