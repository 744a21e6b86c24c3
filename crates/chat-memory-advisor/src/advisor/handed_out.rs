use std::fmt;

use advisor_core::{CallKey, ConversationKey, Message, Result, Role, ToolCall, TurnEnd, TurnId};

use crate::ChatMemoryAdvisor;
use crate::transcript::planned::extend_with_planned;
use crate::transcript::repair::is_remembered;
use crate::turn::close::{closing, end_of};
use conversation_store::{Entry, EntryKind, ReadRange, Snapshot, StoreError, Version};
use conversation_store::{last_end, same_turn};

/// A call that a turn has left to the caller, and that has no result yet.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct HandedOutCall {
    /// Its name for ever, whichever process asks; [`ChatMemoryAdvisor::record_call_start`] takes it.
    ///
    /// Absent where a version before rounds were stored has written the answer.
    pub key: Option<CallKey>,
    /// What the model asks for.
    pub call: ToolCall,
    /// Whether its start is recorded: somebody runs it, or did, and its result is still to come.
    pub started: bool,
}

/// Returns the calls that a conversation waits for, in call order.
///
/// They are those that the last turn has left to the caller, as it does with calls of a tool that
/// [only the caller runs](advisor_core::ToolDefinition::client_side). Their results begin the next turn; once that has begun,
/// there are none. A turn that was rolled back is passed over. Calls that are not complete, and those of an answer that was
/// filtered or cut, must not run and are not among them.
///
/// The snapshot must show the turn that made them, as those of [`ReadRange::LastTurns`] and [`ReadRange::All`] do.
#[must_use]
pub fn handed_out_calls(snapshot: &Snapshot) -> Vec<HandedOutCall> {
    last_to_say_something(&snapshot.entries).map(calls_left_by).unwrap_or_default()
}

impl ChatMemoryAdvisor {
    /// The calls that a conversation waits for, as [`handed_out_calls`] says: for a process that runs them
    /// in place of the one that was given the answer.
    ///
    /// # At most once
    /// A key alone keeps no call from running twice. Who runs a call that must not run twice
    /// ([`Effect::AtMostOnce`](advisor_core::Effect)) records its start first, with
    /// [`record_call_start`](Self::record_call_start), and runs it only if that succeeds.
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
    /// for handed_out in memory.handed_out_calls(&ConversationKey::new("c1")?).await? {
    ///     println!("{:?}: {}", handed_out.key, handed_out.call.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn handed_out_calls(&self, key: &ConversationKey) -> Result<Vec<HandedOutCall>> {
        Ok(self.last_turn(key).await?.handed_out_calls())
    }

    /// The last turn that says something, as it ends for this process.
    pub(crate) async fn last_turn(&self, key: &ConversationKey) -> Result<LastTurn> {
        let (store, mut turns) = (self.settings.store(), 1_usize);
        loop {
            let snapshot =
                store.load(key, ReadRange::LastTurns(turns)).await.map_err(StoreError::into_load_error)?;
            let (version, last_turn) = (snapshot.version, snapshot.last_turn().cloned());
            let mut log = snapshot.entries;
            let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
            // A turn that this process has cut off or rolled back may not be closed yet.
            let end = end_of(last, &self.settings.registry.unfinished(key));
            if last_end(last) != Some(&end) {
                let closing = closing(last, &end, &[], &self.settings.measure.texts);
                extend_with_planned(&mut log, closing);
            }
            let is_all = log.first().is_none_or(Entry::is_first);
            match last_to_say_something(&log) {
                None if !is_all => turns = turns.saturating_mul(2),
                entries => {
                    let entries = entries.unwrap_or_default().to_vec();
                    return Ok(LastTurn { version, last_turn, entries });
                }
            }
        }
    }
}

/// The last turn of a conversation that says something.
#[derive(Debug)]
pub(crate) struct LastTurn {
    /// The version of the conversation.
    pub(crate) version: Version,
    /// The turn of the log's last entry, which may be a later one.
    pub(crate) last_turn: Option<TurnId>,
    /// Its entries. What is not written yet of its end has the number 0.
    pub(crate) entries: Vec<Entry>,
}

impl LastTurn {
    pub(crate) fn handed_out_calls(&self) -> Vec<HandedOutCall> {
        calls_left_by(&self.entries)
    }
}

impl fmt::Debug for HandedOutCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The arguments are content: they are not for logs.
        f.debug_struct("HandedOutCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

fn last_to_say_something(log: &[Entry]) -> Option<&[Entry]> {
    log.chunk_by(same_turn).rfind(|turn| says_something(turn))
}

/// The calls that a turn has left to the caller.
fn calls_left_by(turn: &[Entry]) -> Vec<HandedOutCall> {
    // Calls of a turn that was cut off may have run, and the next turn answers them. Those of an answer that was filtered
    // or cut must not run.
    let ended = last_end(turn);
    let waits = matches!(ended, Some(TurnEnd::Completed(reason)) if !reason.vetoes_calls());
    if waits { open_at_end(turn).unwrap_or_default() } else { Vec::new() }
}

fn says_something(turn: &[Entry]) -> bool {
    last_end(turn) != Some(&TurnEnd::RolledBack) && said(turn).next().is_some()
}

/// The calls of the last answer of a turn that nothing in it answers or passes over.
fn open_at_end(turn: &[Entry]) -> Option<Vec<HandedOutCall>> {
    let said: Vec<_> = said(turn).collect();
    let at = said.iter().rposition(|(_, message)| message.role() == Role::Assistant)?;
    let (entry, answer) = said.get(at)?;
    let later = said.iter().skip(at.saturating_add(1));
    let mut results: Vec<_> =
        later.map(|(_, message)| Some(&message.tool_result()?.call_id)).collect::<Option<_>>()?;
    let mut is_open = |call: &ToolCall| {
        // Ids need not be unique: a result is for the first call of its id that has none.
        let result = results.iter().position(|id| **id == call.id);
        result.map(|result| results.remove(result)).is_none()
    };
    let key = |position| Some(CallKey::new(entry.turn.clone(), entry.round()?, position));
    // One that was cut off must not run.
    let calls = (0..).zip(answer.tool_calls()).filter(|(_, call)| is_open(call) && call.complete);
    let handed_out = |(position, call): (_, &ToolCall)| {
        let key = key(position);
        let started = key.as_ref().is_some_and(|key| is_started(turn, key));
        HandedOutCall { key, call: call.clone(), started }
    };
    Some(calls.map(handed_out).collect())
}

fn is_started(turn: &[Entry], key: &CallKey) -> bool {
    let mut kinds = turn.iter().map(|entry| &entry.kind);
    kinds.any(|kind| matches!(kind, EntryKind::CallStarted(start) if start.key == *key))
}

/// The messages of a turn that are remembered, each with its entry.
fn said(turn: &[Entry]) -> impl Iterator<Item = (&Entry, &Message)> {
    let messages = turn.iter().filter_map(|entry| Some((entry, entry.kind.as_message()?)));
    messages.filter(|(_, message)| is_remembered(message) && !message.is_empty_answer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{
        answer, calls, completed, handed_out, interrupted, log, result, rolled_back, user,
    };

    /// The calls of a log whose answers were given in round 3, as their keys and ids.
    fn open(turns: &[(&str, Vec<EntryKind>)]) -> Vec<String> {
        let entries: Vec<_> = log(turns).into_iter().map(|entry| entry.with_round(3)).collect();
        let snapshot = Snapshot::from_log(&entries, ReadRange::All);
        let calls = handed_out_calls(&snapshot).into_iter();
        calls.map(|open| format!("{} {}", open.key.unwrap(), open.call.id)).collect()
    }

    #[test]
    fn the_calls_that_end_a_turn_are_handed_out_until_the_next_one() {
        let turn = |kinds: Vec<EntryKind>| ("t", kinds);
        let asked = || vec![user("u").into(), calls(&["1", "2"]).into(), handed_out()];
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
    fn only_calls_without_a_result_that_a_turn_completed_with_are_handed_out() {
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
    fn a_call_of_an_older_version_has_no_key() {
        let entries = log(&[("t", vec![user("u").into(), calls(&["1"]).into(), handed_out()])]);
        let open = handed_out_calls(&Snapshot::from_log(&entries, ReadRange::All));
        assert_eq!((open.len(), &open[0].key, open[0].call.id.as_str()), (1, &None, "1"));
    }
}
