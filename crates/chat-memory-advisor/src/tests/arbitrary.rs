//! Random logs for properties.

use advisor_core::{Block, BlockContent, Message, Role, TurnEnd, TurnId};
use conversation_store::{Entry, EntryKind};
use proptest::prelude::*;

use super::{
    Course, Ends, Happens, answer, calls, client_side_end, completed, interrupted, log, result, rolled_back,
    started, user,
};
use crate::transcript::repair::is_remembered;

fn any_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["1", "2", "3"])
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        4 => "[a-c]{1,2}".prop_map(|text| user(&text)),
        3 => "[a-c]{1,2}".prop_map(|text| answer(&text)),
        4 => prop::collection::vec(any_id(), 1..4).prop_map(|ids| calls(&ids)),
        6 => any_id().prop_map(result),
        1 => Just(answer(" \n")),
        1 => Just(Message::assistant_blocks(vec![Block::new(BlockContent::Reasoning("hm".into()))])),
        1 => Just(Message::system("s")),
        1 => Just(user("e").ephemeral()),
        1 => Just(calls(&["1"]).ephemeral()),
    ]
}

fn any_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        12 => any_message().prop_map(EntryKind::Message),
        2 => Just(completed()),
        1 => Just(client_side_end()),
        2 => "[a-c]{0,2}".prop_map(|partial| interrupted(&partial)),
        1 => Just(EntryKind::TurnEnded(TurnEnd::Failed { partial: "p".into() })),
        1 => Just(rolled_back()),
        3 => (0..3_u32, any_id()).prop_map(|(position, id)| started(1, position, id)),
        1 => Just(EntryKind::Summary("short".into())),
        1 => Just(EntryKind::Unknown(
            [("format".into(), 9.into()), ("kind".into(), "mood".into())].into_iter().collect(),
        )),
        1 => Just(EntryKind::Corrupt(b"half".into())),
    ]
}

/// Generates arbitrary logs without two user messages in a row within a turn, since repair keeps those.
pub(crate) fn any_log() -> impl Strategy<Value = Vec<Entry>> {
    let any_turn = (0..6_u32, prop::collection::vec(any_kind(), 0..8));
    prop::collection::vec(any_turn, 0..8).prop_map(|turns| {
        let turns: Vec<_> = turns
            .into_iter()
            .map(|(name, kinds)| (format!("t{name}"), without_doubled_users(kinds)))
            .collect();
        let turns: Vec<_> = turns.iter().map(|(name, kinds)| (name.as_str(), kinds.clone())).collect();
        // Turns of one name that become adjacent are one turn.
        let log = log(&turns);
        let kinds = without_doubled_in_turns(&log);
        (1..).zip(kinds).map(|(seq, (turn, kind))| Entry::new(seq, turn, kind)).collect()
    })
}

fn without_doubled_in_turns(log: &[Entry]) -> Vec<(TurnId, EntryKind)> {
    let of_turn = |entries: &[Entry]| {
        let kinds = entries.iter().map(|entry| entry.kind.clone()).collect();
        let turn = entries[0].turn.clone();
        without_doubled_users(kinds).into_iter().map(move |kind| (turn.clone(), kind)).collect::<Vec<_>>()
    };
    log.chunk_by(conversation_store::same_turn).flat_map(of_turn).collect()
}

fn without_doubled_users(kinds: Vec<EntryKind>) -> Vec<EntryKind> {
    let mut last = None;
    let keeps = |kind: &EntryKind| {
        let role = match kind {
            EntryKind::Message(message) if is_remembered(&message) => Some(message.role()),
            EntryKind::TurnEnded(_) => None,
            _ => return true,
        };
        let doubled = role == Some(Role::User) && last == role;
        last = role;
        !doubled
    };
    kinds.into_iter().filter(keeps).collect()
}

/// Generates logs as memory writes them: every turn is complete.
pub(crate) fn ordinary_log() -> impl Strategy<Value = Vec<Entry>> {
    // The calls of a round, each with whether its tool must not run twice.
    type Made = Vec<(&'static str, bool)>;
    let round = prop::collection::vec((any_id(), any::<bool>()), 1..3);
    let any_turn = (prop::collection::vec(round, 0..4), prop::option::weighted(0.3, "[a-c]{0,2}"));
    prop::collection::vec(any_turn, 0..6).prop_map(|turns| {
        let kinds = |(rounds, cut): (Vec<Made>, Option<String>)| {
            let mut kinds = vec![user("u").into()];
            for (round, made) in (1..).zip(rounds) {
                let ids: Vec<_> = made.iter().map(|(id, _)| *id).collect();
                kinds.push(calls(&ids).into());
                let once = (0..).zip(&made).filter(|(_, (_, once))| *once);
                kinds.extend(once.map(|(position, (id, _))| started(round, position, id)));
                kinds.extend(ids.iter().map(|id| result(id).into()));
            }
            match cut {
                Some(partial) => kinds.push(interrupted(&partial)),
                None => kinds.extend([answer("a").into(), completed()]),
            }
            kinds
        };
        let turns: Vec<_> =
            (0..).zip(turns).map(|(number, turn): (u32, _)| (format!("t{number}"), kinds(turn))).collect();
        log(&turns.iter().map(|(name, kinds)| (name.as_str(), kinds.clone())).collect::<Vec<_>>())
    })
}

/// Generates courses of turns, whose messages have sizes up to `most`.
pub(crate) fn any_courses(most: usize) -> impl Strategy<Value = Vec<Course>> {
    let size = move || prop_oneof![3 => 0..=most.min(4), 1 => 0..=most];
    let happens = prop_oneof![
        4 => (size(), prop::collection::vec(size(), 1..4)).prop_map(|(calls, results)| Happens::Round(calls, results)),
        1 => size().prop_map(Happens::Said),
        2 => size().prop_map(Happens::Steered),
    ];
    let ends = prop_oneof![
        8 => size().prop_map(Ends::Answered),
        1 => (1..4_usize, 0..4_usize).prop_map(|(calls, brought)| Ends::ClientSide(calls, brought)),
        1 => Just(Ends::Unanswered),
        1 => prop::option::of(size()).prop_map(Ends::Cut),
        1 => Just(Ends::Undone),
        1 => Just(Ends::Open),
    ];
    let question = prop::option::weighted(0.95, size());
    prop::collection::vec((question, prop::collection::vec(happens, 0..8), ends), 0..8)
}
