//! Logs for tests: fixed and random ones.

use advisor_core::{
    Block, BlockContent, CallKey, CallStart, FinishReason, Message, Role, ToolCall, ToolResult, TurnEnd,
    TurnId,
};
use proptest::prelude::*;

use crate::MemoryTexts;
use crate::transcript::repair::is_remembered;
use conversation_store::{Entry, EntryKind};

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

/// Returns the size that a message names after `#`; else 2 for calls, 3 for a result, and `other` for the rest.
pub(crate) fn counted(message: &Message, other: usize) -> usize {
    let text = message.text();
    let named = text.split_once('#').map(|(_, size)| size.split(' ').next().unwrap().parse().unwrap());
    named.unwrap_or_else(|| match message.role() {
        Role::Tool => 3,
        Role::Assistant if message.tool_calls().next().is_some() => 2,
        _ => other,
    })
}

/// Returns texts of which none is the default one.
pub(crate) fn other_texts() -> MemoryTexts {
    MemoryTexts::default()
        .with_interrupted("abgebrochen")
        .with_no_answer("keine Antwort")
        .with_went_on("ohne diese")
        .with_left_out("Schritte fehlen")
        .with_message_left_out("zu lang")
        .with_not_started("nicht begonnen")
        .with_not_run("nicht gelaufen")
        .with_outcome_unknown("unbekannt")
        .with_verify_before_retrying("erst nachsehen")
        .with_summary("Kurz:")
}

/// Creates the start of the call at `position` in the answer of `round`.
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

/// Creates a log of turns, each given by its name and the kinds of its entries.
pub(crate) fn log(turns: &[(&str, Vec<EntryKind>)]) -> Vec<Entry> {
    let entries = turns.iter().flat_map(|(name, kinds)| kinds.iter().map(|kind| (turn(name), kind.clone())));
    (1..).zip(entries).map(|(seq, (turn, kind))| Entry::new(seq, turn, kind)).collect()
}

/// Describes a transcript, one word per message: `u:hello`, `a:hi`, `a(1,2)`, `r1`, `r1!` for an error result.
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

/// An event in a turn, with the sizes of its messages.
#[derive(Debug, Clone)]
pub(crate) enum Happens {
    /// An answer of this size, with a call for each result of these sizes.
    Round(usize, Vec<usize>),
    /// An answer after which the turn continues.
    Said(usize),
    /// A user message while the turn runs.
    Steered(usize),
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub(crate) enum Ends {
    Answered(usize),
    /// Its calls are left to the caller; the next turn begins with results for some of them.
    HandedOut(usize, usize),
    Unanswered,
    Cut(Option<usize>),
    Undone,
    /// No end is written.
    Open,
}

pub(crate) type Course = (Option<usize>, Vec<Happens>, Ends);

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
        1 => (1..4_usize, 0..4_usize).prop_map(|(calls, brought)| Ends::HandedOut(calls, brought)),
        1 => Just(Ends::Unanswered),
        1 => prop::option::of(size()).prop_map(Ends::Cut),
        1 => Just(Ends::Undone),
        1 => Just(Ends::Open),
    ];
    let question = prop::option::weighted(0.95, size());
    prop::collection::vec((question, prop::collection::vec(happens, 0..8), ends), 0..8)
}

/// Creates the log of a conversation with these courses. No two user or model messages have the same text, and
/// each names its size as [`counted`] reads it.
pub(crate) fn log_of(courses: &[Course]) -> Vec<Entry> {
    let mut said = 0..;
    let mut text = |size: &usize| format!("{}#{size}", said.next().unwrap());
    let mut brought: Vec<String> = Vec::new();
    let mut turns = Vec::new();
    for (number, (question, happens, ends)) in courses.iter().enumerate() {
        let mut messages: Vec<_> = brought.drain(..).map(|id| result(&id)).collect();
        messages.extend(question.iter().map(|size| user(&text(size))));
        for happened in happens {
            let after_user = messages.last().is_some_and(|last| last.role() == Role::User);
            match happened {
                Happens::Steered(_) if after_user => {}
                Happens::Steered(size) => messages.push(user(&text(size))),
                Happens::Said(size) => messages.push(answer(&text(size))),
                Happens::Round(size, results) => {
                    let ids: Vec<_> = results.iter().map(&mut text).collect();
                    messages.push(calls_saying(&text(size), &ids));
                    messages.extend(ids.iter().map(|id| result(id)));
                }
            }
        }
        let mut cut = |partial: &Option<usize>| partial.as_ref().map(&mut text).unwrap_or_default();
        let end = match ends {
            Ends::Unanswered => Some(completed()),
            Ends::Undone => Some(rolled_back()),
            Ends::Open => None,
            Ends::Cut(partial) => Some(interrupted(&cut(partial))),
            Ends::Answered(size) => {
                messages.push(answer(&text(size)));
                Some(completed())
            }
            Ends::HandedOut(calls, results) => {
                let ids: Vec<_> = (0..*calls).map(|_| text(&1)).collect();
                messages.push(calls_saying(&text(&1), &ids));
                brought = ids.into_iter().rev().take(*results).collect();
                Some(handed_out())
            }
        };
        let kinds: Vec<_> = messages.into_iter().map(EntryKind::from).chain(end).collect();
        turns.push((format!("t{number}"), kinds));
    }
    log(&turns.iter().map(|(name, kinds)| (name.as_str(), kinds.clone())).collect::<Vec<_>>())
}

fn calls_saying(text: &str, ids: &[String]) -> Message {
    let calls = ids.iter().map(|id| Block::from(ToolCall::new(id.as_str(), "f", "{}")));
    Message::assistant_blocks([Block::text(text)].into_iter().chain(calls).collect())
}
