//! `ClientSideCall` and `client_side_calls`: the client-side calls of the last turn that have no result.

use advisor_core::{ClientSideCall, ConversationKey, Result};
use conversation_store::Snapshot;

use crate::ChatMemoryAdvisor;
use crate::turn::client_side::last_turn::{LastTurn, client_side_calls_of, last_with_messages};

/// Returns the calls that a conversation waits for, in call order.
///
/// The last turn left them to the caller. They are calls of a
/// [client-side tool](advisor_core::ToolDefinition::client_side), for example, or all calls of a chain without a
/// tool loop. Their results begin the next turn; once that has begun, the list is empty. A rolled-back turn is
/// skipped. Incomplete calls, and those of a filtered or truncated answer, must not run and are not listed.
///
/// The snapshot must contain the turn that made them, as those of
/// [`ReadRange::LastTurns`](conversation_store::ReadRange::LastTurns) and
/// [`ReadRange::All`](conversation_store::ReadRange::All) do.
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
        Ok(LastTurn::load(&*self.settings.store, &self.settings.registry, &self.settings.measure.texts, key)
            .await?
            .client_side_calls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conversation_store::{EntryKind, ReadRange};

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
