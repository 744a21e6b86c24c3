use std::fmt;

use advisor_core::{CallKey, ConversationKey, Message, Result, ToolCall, TurnEnd, TurnId};

use crate::ChatMemoryAdvisor;
use crate::transcript::planned::extend_with_planned;
use crate::transcript::repair::{is_answer, is_remembered};
use crate::turn::closing_entries::{closing, end_of};
use conversation_store::{Entry, EntryKind, ReadRange, Snapshot, StoreError, Version, last_end, same_turn};

/// A call that its turn left to the caller, and that has no result yet.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ClientSideCall {
    /// The permanent key of the call, the same in every process. [`ChatMemoryAdvisor::record_call_start`] takes
    /// it.
    ///
    /// `None` if the answer was written by a version that did not store rounds.
    pub key: Option<CallKey>,
    /// The call that the model made.
    pub call: ToolCall,
    /// Whether its start is recorded: it runs or ran, and its result is still to come.
    pub started: bool,
}

/// Returns the calls that a conversation waits for, in call order.
///
/// The last turn left them to the caller. They are calls of a
/// [client-side tool](advisor_core::ToolDefinition::client_side), for example, or all calls of a chain without a
/// tool loop. Their results begin the next turn; once that has begun, the list is empty. A rolled-back turn is
/// skipped. Incomplete calls, and those of a filtered or truncated answer, must not run and are not listed.
///
/// The snapshot must contain the turn that made them, as those of [`ReadRange::LastTurns`] and [`ReadRange::All`]
/// do.
#[must_use]
pub fn client_side_calls(snapshot: &Snapshot) -> Vec<ClientSideCall> {
    last_with_messages(&snapshot.entries).map(client_side_calls_of).unwrap_or_default()
}

impl ChatMemoryAdvisor {
    /// Returns the calls that a conversation waits for, as [`client_side_calls`] does. A process that did not
    /// receive the answer itself can then run them.
    ///
    /// # At most once
    /// A key alone does not keep a call from running twice. For a call that must not run twice
    /// ([`Effect::AtMostOnce`](advisor_core::Effect)), record its start first, with
    /// [`record_call_start`](Self::record_call_start). Run the call only if that succeeds.
    ///
    /// # Errors
    /// If the conversation cannot be loaded.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ConversationKey;
    /// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    /// for open in memory.client_side_calls(&ConversationKey::new("c1")?).await? {
    ///     println!("{:?}: {}", open.key, open.call.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn client_side_calls(&self, key: &ConversationKey) -> Result<Vec<ClientSideCall>> {
        Ok(self.last_turn(key).await?.client_side_calls())
    }

    /// Returns the last turn with transcript messages, ended as far as this process knows.
    pub(crate) async fn last_turn(&self, key: &ConversationKey) -> Result<LastTurn> {
        let (store, mut turns) = (self.settings.store(), 1_usize);
        loop {
            let snapshot =
                store.load(key, ReadRange::LastTurns(turns)).await.map_err(StoreError::into_load_error)?;
            let (version, last_turn) = (snapshot.version, snapshot.last_turn().cloned());
            let mut log = snapshot.entries;
            let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
            // A turn that this process has cut off or rolled back may not be closed yet.
            let end = end_of(last, &self.settings.registry.unfinished.turns_in(key));
            if last_end(last) != Some(&end) {
                let closing = closing(last, &end, &[], &self.settings.measure.texts);
                extend_with_planned(&mut log, closing);
            }
            // Damaged data may lack their beginning: no entry is the first one then.
            let is_all = log.first().is_none_or(Entry::is_first) || turns == usize::MAX;
            match last_with_messages(&log) {
                None if !is_all => turns = turns.saturating_mul(2),
                entries => {
                    let entries = entries.unwrap_or_default().to_vec();
                    return Ok(LastTurn { version, last_turn, entries });
                }
            }
        }
    }
}

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
    pub(crate) fn client_side_calls(&self) -> Vec<ClientSideCall> {
        client_side_calls_of(&self.entries)
    }
}

impl fmt::Debug for ClientSideCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments are content and must not be logged.
        f.debug_struct("ClientSideCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

fn last_with_messages(log: &[Entry]) -> Option<&[Entry]> {
    log.chunk_by(same_turn).rfind(|turn| has_messages(turn))
}

/// Returns the client-side calls of a turn.
fn client_side_calls_of(turn: &[Entry]) -> Vec<ClientSideCall> {
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
        let key = key(position);
        let started = key.as_ref().is_some_and(|key| is_started(turn, key));
        ClientSideCall { key, call: call.clone(), started }
    };
    Some(calls.map(client_side).collect())
}

fn is_started(turn: &[Entry], key: &CallKey) -> bool {
    let mut kinds = turn.iter().map(|entry| &entry.kind);
    kinds.any(|kind| matches!(kind, EntryKind::CallStarted(start) if start.key == *key))
}

/// Returns the remembered messages of a turn, without empty answers, each with its entry.
fn remembered(turn: &[Entry]) -> impl Iterator<Item = (&Entry, &Message)> {
    let messages = turn.iter().filter_map(|entry| Some((entry, entry.kind.as_message()?)));
    messages.filter(|(_, message)| is_remembered(message) && !message.is_empty_answer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{
        answer, calls, client_side_end, completed, interrupted, log, result, rolled_back, user,
    };

    /// Returns the client-side calls of a log whose answers were given in round 3, as keys and ids.
    fn open(turns: &[(&str, Vec<EntryKind>)]) -> Vec<String> {
        let entries: Vec<_> = log(turns).into_iter().map(|entry| entry.with_round(3)).collect();
        let snapshot = Snapshot::from_log(&entries, ReadRange::All);
        let calls = client_side_calls(&snapshot).into_iter();
        calls.map(|open| format!("{} {}", open.key.unwrap(), open.call.id)).collect()
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
        let open = client_side_calls(&Snapshot::from_log(&entries, ReadRange::All));
        assert_eq!((open.len(), &open[0].key, open[0].call.id.as_str()), (1, &None, "1"));
    }
}
