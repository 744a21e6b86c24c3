//! The calls that a turn left to its caller: `LastTurn` has them, `append_starts` records which of them start.

use advisor_core::{
    CallKey, CallStart, ClientSideCall, ConversationKey, Error, ErrorKind, Result, Text, ToolCall, TurnEnd,
    TurnId,
};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, EntryKind, NewEntry, ReadRange, Snapshot, StoreError,
    Version, last_end, same_turn,
};
use uuid::Uuid;

use crate::conversation::unfinished::{closing, end_of, extend_with_planned};
use crate::conversation::{Registry, append_once, find_in_log};
use crate::transcript::repair::{is_answer, last_with_messages, remembered};
use crate::turn::TurnMemoryState;

/// The last turn of a conversation that has transcript messages.
#[derive(Debug)]
pub(crate) struct LastTurn {
    /// The version of the conversation.
    version: Version,
    /// The turn of the log's last entry, which may be a later one.
    last_turn: Option<TurnId>,
    /// Its entries. Entries of its end that are not written yet have numbers above `version`.
    pub(super) entries: Vec<Entry>,
}

impl LastTurn {
    /// Returns the last turn with transcript messages, ended as far as this process knows.
    pub(crate) async fn load(
        store: &dyn ConversationStore,
        registry: &Registry,
        key: &ConversationKey,
    ) -> Result<Self> {
        let see = |snapshot: Snapshot| {
            let (version, last_turn) = (snapshot.version, snapshot.last_turn().cloned());
            let mut log = snapshot.entries;
            let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
            // A turn that this process has cut off or rolled back may not be closed yet.
            let end = end_of(last, &registry.unfinished_in(key));
            if last_end(last) != Some(&end) {
                let closing = closing(last, &end, &[]);
                extend_with_planned(&mut log, closing);
            }
            let entries = last_with_messages(&log).map(<[Entry]>::to_vec);
            let is_enough = entries.is_some();
            (Self { version, last_turn, entries: entries.unwrap_or_default() }, is_enough)
        };
        registry.load(store, key, None, ReadRange::LastTurns(1), see).await
    }

    /// Returns its client-side calls.
    pub(crate) fn client_side_calls(&self) -> Vec<ClientSideCall> {
        client_side_calls_of(&self.entries)
    }

    /// Returns the start, if the conversation waits for its call and the call was not started.
    pub(crate) fn open_call(&self, start: &CallStart) -> Result<CallStart> {
        let calls = self.client_side_calls();
        let is_meant =
            |call: &&ClientSideCall| call.key.as_ref() == Some(&start.key) && call.call.id == start.call_id;
        match calls.iter().find(is_meant) {
            None => Err(Error::new(
                ErrorKind::NoClientSideCall,
                format!(
                    "the conversation does not wait for the call {}; list its `client_side_calls`",
                    start.key
                ),
            )),
            Some(call) if call.started => Err(already_started(start)),
            Some(_) => Ok(start.clone()),
        }
    }

    /// Returns the batch that appends the starts after the end of the turn that made the calls, all in one answer.
    ///
    /// Turns without transcript messages, such as a rolled-back one, may follow that turn. They are left on
    /// another branch, since the entries of a turn must be adjacent.
    fn batch(&self, first: &CallStart, starts: &[CallStart]) -> Batch {
        let turn = &first.key.turn;
        let key = key_of_starts(turn, first.key.round);
        let entry = |start: &CallStart| NewEntry::new(turn.clone(), EntryKind::CallStarted(start.clone()));
        let entries = starts.iter().map(entry).collect();
        let seqs = self.entries.iter().map(|entry| entry.seq);
        let written = seqs.filter(|seq| *seq <= self.version.0).max();
        let parent = written.filter(|seq| Version(*seq) != self.version).map(EntryId);
        Batch::new(key, entries).with_parent(parent).with_last_turn(self.last_turn.clone())
    }
}

/// Appends starts behind the turn that made the calls, each at most once. `plan` checks that turn and returns the starts,
/// and a value that is returned once they are stored.
pub(crate) async fn append_starts<T>(
    memory: &TurnMemoryState,
    plan: impl Fn(&LastTurn) -> Result<(Vec<CallStart>, T)>,
) -> Result<T> {
    let TurnMemoryState { store, registry, key, lease, .. } = memory;
    let mut tried = None;
    loop {
        let last = LastTurn::load(&**store, registry, key).await?;
        let (starts, planned) = plan(&last)?;
        let Some(first) = starts.first() else { return Ok(planned) };
        // A start may be recorded after the answer on any branch.
        let after = last.entries.first().map_or(EntryId::BEGINNING, |entry| EntryId(entry.seq));
        let is_one = |entry: &Entry| match &entry.kind {
            EntryKind::CallStarted(known) => starts.iter().find(|start| start.key == known.key).cloned(),
            _ => None,
        };
        if let Some(started) = find_in_log(&**store, key, after, is_one).await? {
            return Err(already_started(&started));
        }
        let batch = last.batch(first, &starts).with_token(lease.token());
        match append_once(&**store, key, last.version, batch).await {
            // Another start was recorded, or the conversation has continued.
            Err(StoreError::Conflict { .. }) if tried != Some(last.version) => tried = Some(last.version),
            outcome => return outcome.map(|_| planned).map_err(Error::from),
        }
    }
}

/// Returns a unique key for starts of calls: a second writer of the same starts must not get success under the first
/// one's key, since it would run the tools again.
pub(crate) fn key_of_starts(turn: &TurnId, round: u32) -> BatchKey {
    BatchKey::new(turn.clone(), round, format!("starts-{}", Uuid::now_v7()))
}

fn already_started(start: &CallStart) -> Error {
    let text = format!("the call {} was started before; do not run it, and wait for its result", start.key);
    Error::new(ErrorKind::CallAlreadyStarted, text)
}

/// Returns the client-side calls of a turn.
pub(crate) fn client_side_calls_of(turn: &[Entry]) -> Vec<ClientSideCall> {
    // Calls of an interrupted turn may have run, and the next turn answers them. Calls of a filtered or truncated
    // answer must not run.
    let ended = last_end(turn);
    let waits = matches!(ended, Some(TurnEnd::Completed(reason)) if !reason.vetoes_calls());
    if waits { open_at_end(turn).unwrap_or_default() } else { Vec::new() }
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
    let key = |position| Some(CallKey::new(entry.turn.clone(), entry.round?, position));
    // An incomplete call must not run.
    let calls = (0..).zip(answer.tool_calls()).filter(|(_, call)| is_open(call) && call.complete);
    let client_side = |(position, call): (_, &ToolCall)| {
        let key = key(position);
        let started = key.as_ref().is_some_and(|key| is_started(turn, key));
        let definition = key.as_ref().and_then(|key| definition_of(turn, key));
        ClientSideCall { key, call: call.clone(), started, definition }
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

#[cfg(test)]
mod tests {
    use super::*;
    use conversation_store::EntryKind;

    use crate::tests::{
        answer, calls, client_side_end, completed, interrupted, log, result, rolled_back, user,
    };
    use crate::transcript::repair::last_with_messages;

    /// Returns the client-side calls of a log whose answers were given in round 3, as keys and ids.
    fn open(turns: &[(&str, Vec<EntryKind>)]) -> Vec<String> {
        let mut entries = log(turns);
        entries.iter_mut().for_each(|entry| entry.round = Some(3));
        let calls = last_with_messages(&entries).map(client_side_calls_of).unwrap_or_default();
        calls.into_iter().map(|open| format!("{} {}", open.key.unwrap(), open.call.id)).collect()
    }

    #[test]
    fn calls_ending_turn_stay_open_until_next_turn() {
        let turn = |kinds: Vec<EntryKind>| ("t", kinds);
        let asked = || vec![user("u").into(), calls(&["1", "2"]).into(), client_side_end()];
        assert_eq!(open(&[turn(asked())]), ["t/3/0 1", "t/3/1 2"]);
        assert_eq!(open(&[]), [""; 0]);
        for next in [
            vec![result("1").into(), result("2").into()],
            vec![result("1").into()],
            vec![user("never mind").into()],
            vec![user("never mind").into(), answer("a").into(), completed()],
        ] {
            assert_eq!(open(&[turn(asked()), ("next", next)]), [""; 0]);
        }
        let undone = || ("undone", vec![user("v").into(), calls(&["9"]).into(), rolled_back()]);
        assert_eq!(open(&[turn(asked()), undone(), undone()]), ["t/3/0 1", "t/3/1 2"]);
        assert_eq!(open(&[turn(asked()), ("silent", vec![EntryKind::Summary("s".into())])]).len(), 2);
    }

    #[test]
    fn only_unanswered_calls_of_completed_turn_are_open() {
        let of = |kinds: Vec<EntryKind>| open(&[("t", kinds)]);
        let begun = || vec![user("u").into(), calls(&["1", "1", "2"]).into()];
        let with = |more: Vec<EntryKind>| of([begun(), more].concat());
        assert_eq!(with(vec![]), [""; 0], "the turn may still run");
        assert_eq!(with(vec![interrupted("")]), [""; 0], "they may have run");
        assert_eq!(with(vec![completed()]), ["t/3/0 1", "t/3/1 1", "t/3/2 2"]);
        assert_eq!(with(vec![result("1").into(), completed()]), ["t/3/1 1", "t/3/2 2"]);
        assert_eq!(with(vec![result("2").into(), completed()]), ["t/3/0 1", "t/3/1 1"]);
        assert_eq!(with(vec![user("v").into(), completed()]), [""; 0]);
        assert_eq!(with(vec![answer("a").into(), completed()]), [""; 0]);
        assert_eq!(with(vec![answer(" ").into(), completed()]).len(), 3, "an empty answer is none");
        assert_eq!(of(vec![user("u").into(), completed()]), [""; 0]);
    }

    #[test]
    fn call_from_older_version_has_no_key() {
        let entries = log(&[("t", vec![user("u").into(), calls(&["1"]).into(), client_side_end()])]);
        let open = client_side_calls_of(&entries);
        assert_eq!((open.len(), &open[0].key, open[0].call.id.as_str()), (1, &None, "1"));
    }
}
