//! Logs for tests.

mod arbitrary;

use std::sync::Arc;

use advisor_core::{
    Block, CallKey, CallStart, ChatRequest, ConversationKey, FinishReason, Message, Result, Role, ToolCall,
    ToolResult, Turn, TurnEnd, TurnId,
};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryKind, InMemoryStore, NewEntry, Version,
};
use futures::FutureExt;

use crate::conversation::unfinished::UnfinishedTurn;
use crate::settings::Settings;
use crate::transcript::window::Measure;
use crate::turn::TurnMemory;
use crate::turn::start::{Start, StartOutcome, StartPlan};

pub(crate) use arbitrary::{any_courses, any_log, ordinary_log};

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

/// Runs a future on a runtime of this thread.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// Returns a memory of a turn with this name in the conversation `c` of a store.
pub(crate) fn turn_memory(store: impl ConversationStore, name: &str, measure: Measure) -> TurnMemory {
    let settings = Settings { measure, ..Settings::new(Arc::new(store)) };
    let request = ChatRequest { turn: Turn::new(turn(name)), ..ChatRequest::new(user("u")) };
    TurnMemory::new(&settings, &request, ConversationKey::new("c").unwrap())
}

/// Returns a store that has this log as the conversation `c`.
pub(crate) fn stored(log: &[Entry]) -> InMemoryStore {
    let store = InMemoryStore::new();
    let entries =
        log.iter().map(|entry| NewEntry::new(entry.turn.clone(), entry.kind.clone()).with_round(entry.round));
    let batch = Batch::new(BatchKey::new(turn("setup"), 0, "x"), entries.collect());
    let key = ConversationKey::new("c").unwrap();
    store.append(&key, Version::EMPTY, batch).now_or_never().unwrap().unwrap();
    store
}

/// Reads a log as far as a turn with this name and input needs, and plans its start.
pub(crate) fn plan_start(
    name: &str,
    measure: Measure,
    log: &[Entry],
    said: &[Message],
    unfinished: &[UnfinishedTurn],
) -> Result<StartOutcome<StartPlan>> {
    let memory = turn_memory(stored(log), name, measure).0;
    for turn in unfinished {
        memory.registry.register(&memory.key, turn.clone());
    }
    let planned = wait_for(Start::new(&memory, said).read());
    planned.map(|(planned, _)| planned)
}

/// Creates the start of the call at `position` in the answer of `round`.
pub(crate) fn started(round: u32, position: u32, id: &str) -> EntryKind {
    EntryKind::CallStarted(CallStart::new(CallKey::new(turn("t"), round, position), id))
}

pub(crate) fn completed() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))
}

pub(crate) fn client_side_end() -> EntryKind {
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
    /// Its calls are client-side; the next turn begins with results for some of them.
    ClientSide(usize, usize),
    Unanswered,
    Cut(Option<usize>),
    Undone,
    /// No end is written.
    Open,
}

pub(crate) type Course = (Option<usize>, Vec<Happens>, Ends);

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
            Ends::ClientSide(calls, results) => {
                let ids: Vec<_> = (0..*calls).map(|_| text(&1)).collect();
                messages.push(calls_saying(&text(&1), &ids));
                brought = ids.into_iter().rev().take(*results).collect();
                Some(client_side_end())
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
