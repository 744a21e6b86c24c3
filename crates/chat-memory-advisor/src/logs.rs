//! Logs for tests: by hand and by chance.

use advisor_core::{
    Block, BlockContent, CallKey, CallStart, FinishReason, Message, Role, ToolCall, ToolResult, TurnEnd,
    TurnId,
};
use proptest::prelude::*;

use crate::repair::is_remembered;
use crate::{Entry, EntryKind};

pub(crate) fn turn(name: &str) -> TurnId {
    TurnId::new(name).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn answer(text: &str) -> Message {
    Message::assistant(text)
}

pub(crate) fn calls(ids: &[&str]) -> Message {
    Message::assistant_blocks(ids.iter().map(|id| Block::from(ToolCall::new(*id, "f", "{}"))).collect())
}

pub(crate) fn result(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "f", ""), vec![format!("result {id}").into()]))
}

/// The start of the call at `position` of the answer of `round`.
pub(crate) fn started(round: u32, position: u32, id: &str) -> EntryKind {
    EntryKind::CallStarted(CallStart::new(CallKey::new(turn("t"), round, position), id))
}

pub(crate) fn completed() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))
}

pub(crate) fn handed_out() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::ToolCalls))
}

pub(crate) fn interrupted(partial: &str) -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Interrupted { partial: partial.into() })
}

pub(crate) fn rolled_back() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::RolledBack)
}

impl From<Message> for EntryKind {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

/// A log of turns, each a name and what its entries say.
pub(crate) fn log(turns: &[(&str, Vec<EntryKind>)]) -> Vec<Entry> {
    let entries = turns.iter().flat_map(|(name, kinds)| kinds.iter().map(|kind| (turn(name), kind.clone())));
    (1..).zip(entries).map(|(seq, (turn, kind))| Entry::new(seq, turn, kind)).collect()
}

/// A transcript in one word per message: `u:hello`, `a:hi`, `a(1,2)`, `r1`, `r1!` for an error result.
pub(crate) fn words<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let word = |message: &Message| match message.role() {
        Role::System => format!("s:{}", message.text()),
        Role::User => format!("u:{}", message.text()),
        Role::Assistant if message.tool_calls().next().is_some() => {
            let ids: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
            format!("a({}){}", ids.join(","), message.text())
        }
        Role::Assistant => format!("a:{}", message.text()),
        Role::Tool => {
            let result = message.tool_result().unwrap();
            format!("r{}{}", result.call_id, if result.is_error { "!" } else { "" })
        }
    };
    messages.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

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
        1 => Just(handed_out()),
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

/// A log of anything at all, except that in no turn the user speaks twice in a row: what a caller says
/// twice stays twice.
pub(crate) fn any_log() -> impl Strategy<Value = Vec<Entry>> {
    let any_turn = (0..6_u32, prop::collection::vec(any_kind(), 0..8));
    prop::collection::vec(any_turn, 0..8).prop_map(|turns| {
        let turns: Vec<_> = turns
            .into_iter()
            .map(|(name, kinds)| (format!("t{name}"), without_doubled_users(kinds)))
            .collect();
        let turns: Vec<_> = turns.iter().map(|(name, kinds)| (name.as_str(), kinds.clone())).collect();
        // Turns of one name that come to stand side by side are one turn.
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
    log.chunk_by(crate::view::same_turn).flat_map(of_turn).collect()
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

/// A log as memory writes it: every turn complete.
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
