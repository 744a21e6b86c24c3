//! `LastTurn`: the last turn that has messages, and its client-side calls.

use advisor_core::{
    CallKey, ClientSideCall, ConversationKey, Message, Result, Text, ToolCall, TurnEnd, TurnId,
};
use conversation_store::{
    ConversationStore, Entry, EntryKind, ReadRange, StoreError, Version, last_end, same_turn,
};

use crate::MemoryTexts;
use crate::conversation::Registry;
use crate::transcript::planned::extend_with_planned;
use crate::transcript::repair::{is_answer, is_remembered};
use crate::turn::closing_entries::{closing, end_of};

/// The last turn of a conversation that has transcript messages.
#[derive(Debug)]
pub(crate) struct LastTurn {
    /// The version of the conversation.
    pub(crate) version: Version,
    /// The turn of the log's last entry, which may be a later one.
    pub(crate) last_turn: Option<TurnId>,
    /// Its entries. Entries of its end that are not written yet have numbers above `version`.
    pub(crate) entries: Vec<Entry>,
}

impl LastTurn {
    /// Returns the last turn with transcript messages, ended as far as this process knows.
    pub(crate) async fn load(
        store: &dyn ConversationStore,
        registry: &Registry,
        texts: &MemoryTexts,
        key: &ConversationKey,
    ) -> Result<Self> {
        let mut turns = 1_usize;
        loop {
            let snapshot =
                store.load(key, ReadRange::LastTurns(turns)).await.map_err(StoreError::into_load_error)?;
            let (version, last_turn) = (snapshot.version, snapshot.last_turn().cloned());
            let mut log = snapshot.entries;
            let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
            // A turn that this process has cut off or rolled back may not be closed yet.
            let end = end_of(last, &registry.unfinished.turns_in(key));
            if last_end(last) != Some(&end) {
                let closing = closing(last, &end, &[], texts);
                extend_with_planned(&mut log, closing);
            }
            // Damaged data may lack their beginning: no entry is the first one then.
            let is_all = log.first().is_none_or(Entry::is_first) || turns == usize::MAX;
            match last_with_messages(&log) {
                None if !is_all => turns = turns.saturating_mul(2),
                entries => {
                    let entries = entries.unwrap_or_default().to_vec();
                    return Ok(Self { version, last_turn, entries });
                }
            }
        }
    }

    pub(crate) fn client_side_calls(&self) -> Vec<ClientSideCall> {
        client_side_calls_of(&self.entries)
    }
}

pub(crate) fn last_with_messages(log: &[Entry]) -> Option<&[Entry]> {
    log.chunk_by(same_turn).rfind(|turn| has_messages(turn))
}

/// Returns the client-side calls of a turn.
pub(crate) fn client_side_calls_of(turn: &[Entry]) -> Vec<ClientSideCall> {
    // Calls of an interrupted turn may have run, and the next turn answers them. Calls of a filtered or truncated
    // answer must not run.
    let ended = last_end(turn);
    let waits = matches!(ended, Some(TurnEnd::Completed(reason)) if !reason.vetoes_calls());
    if waits { open_at_end(turn).unwrap_or_default() } else { Vec::new() }
}

fn has_messages(turn: &[Entry]) -> bool {
    last_end(turn) != Some(&TurnEnd::RolledBack) && remembered(turn).next().is_some()
}

/// Returns the calls of a turn's last answer that have no result. `None` without an answer, or if a message other
/// than a result follows it.
fn open_at_end(turn: &[Entry]) -> Option<Vec<ClientSideCall>> {
    let remembered: Vec<_> = remembered(turn).collect();
    let at = remembered.iter().rposition(|(_, message)| is_answer(message))?;
    let (entry, answer) = remembered.get(at)?;
    let later = remembered.iter().skip(at.saturating_add(1));
    let mut results: Vec<_> =
        later.map(|(_, message)| Some(&message.tool_result()?.call_id)).collect::<Option<_>>()?;
    let mut is_open = |call: &ToolCall| {
        // Ids need not be unique: a result belongs to the first call with its id that has none.
        let result = results.iter().position(|id| **id == call.id);
        result.map(|result| results.remove(result)).is_none()
    };
    let key = |position| Some(CallKey::new(entry.turn.clone(), entry.round()?, position));
    // An incomplete call must not run.
    let calls = (0..).zip(answer.tool_calls()).filter(|(_, call)| is_open(call) && call.complete);
    let client_side = |(position, call): (_, &ToolCall)| {
        let mut open = ClientSideCall::new(key(position), call.clone());
        if let Some(key) = &open.key {
            (open.started, open.definition) = (is_started(turn, key), definition_of(turn, key));
        }
        open
    };
    Some(calls.map(client_side).collect())
}

fn is_started(turn: &[Entry], key: &CallKey) -> bool {
    let mut kinds = turn.iter().map(|entry| &entry.kind);
    kinds.any(|kind| matches!(kind, EntryKind::CallStarted(start) if start.key == *key))
}

/// Returns the digest of the definition of a call's tool, as the model was offered it.
fn definition_of(turn: &[Entry], key: &CallKey) -> Option<Text> {
    turn.iter().find_map(|entry| match &entry.kind {
        EntryKind::CallPending(call) if call.key == *key => Some(call.definition.clone()),
        _ => None,
    })
}

/// Returns the remembered messages of a turn, without empty answers, each with its entry.
fn remembered(turn: &[Entry]) -> impl Iterator<Item = (&Entry, &Message)> {
    let messages = turn.iter().filter_map(|entry| Some((entry, entry.kind.as_message()?)));
    messages.filter(|(_, message)| is_remembered(message) && !message.is_empty_answer())
}
