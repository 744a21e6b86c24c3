//! The state of a chat: its chain and its conversation.

use std::sync::Arc;

use advisor_chain::chain::TurnEnd;
use advisor_chain::memory::store::{EntryKind, ReadRange, last_end};
use advisor_chain::memory::{ConversationStore, ForkPoint};
use advisor_chain::tools::{ClientSideCall, Decision, DecisionProblem};
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ConversationKey, Error, ErrorKind, Result, Role, TurnId, TurnStream,
};

use crate::printable::escaped;

/// A chat, in one conversation at a time.
pub(super) struct Session {
    pub(super) client: ChatClient,
    pub(super) memory: ChatMemoryAdvisor,
    pub(super) store: Arc<dyn ConversationStore>,
    pub(super) conversation: ConversationKey,
}

impl Session {
    /// Asks a question in this conversation.
    pub(super) fn ask(&self, text: &str) -> TurnStream {
        self.client.prompt().user(text).conversation(self.conversation.clone()).stream()
    }

    /// Asks a question in place of another one, which stays on its own branch.
    pub(super) fn ask_in_place_of(&self, earlier: TurnId, text: &str) -> TurnStream {
        let prompt = self.client.prompt().user(text).conversation(self.conversation.clone());
        prompt.extension(ForkPoint::Before(earlier)).stream()
    }

    /// Continues the conversation with decisions about the calls that wait.
    pub(super) fn resume(&self, decisions: Vec<Decision>) -> TurnStream {
        self.client.prompt().conversation(self.conversation.clone()).resume(decisions).stream()
    }

    /// Returns the calls that wait for a decision.
    pub(super) async fn waiting(&self) -> Result<Vec<ClientSideCall>> {
        self.client.pending_calls(self.conversation.clone()).await
    }

    /// Checks that no call waits for a decision, where nobody can decide.
    ///
    /// # Errors
    /// For a call that waits. A further question would answer it as not run.
    pub(super) async fn refuse_waiting(&self) -> Result<()> {
        let waiting = self.waiting().await?;
        let Some(first) = waiting.first() else { return Ok(()) };
        let message = format!(
            "a call of `{}` waits for a decision; continue the conversation on a terminal, with --memory",
            escaped(&first.call.name)
        );
        Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::Missing }, message))
    }

    /// Returns the last question of this conversation, and its turn.
    pub(super) async fn last_question(&self) -> Result<Option<(TurnId, String)>> {
        let log = self.store.load(&self.conversation, ReadRange::All).await?;
        Ok(log.entries.iter().rev().find_map(|entry| match &entry.kind {
            EntryKind::Message(message) if message.role() == Role::User => {
                Some((entry.turn.clone(), message.text()))
            }
            _ => None,
        }))
    }

    /// Moves to a new conversation with an unused id.
    pub(super) async fn begin_another(&mut self) -> Result<()> {
        for number in 2..u32::MAX {
            let key = ConversationKey::new(&format!("chat-{number}"))?;
            let is_unused = self.store.load(&key, ReadRange::LastEntries(0)).await?.version.0 == 0;
            if is_unused && key != self.conversation {
                self.conversation = key;
                return Ok(());
            }
        }
        Err(Error::new(ErrorKind::Store, "no id for another conversation is free"))
    }

    /// Returns a note about the last turn of this conversation if it did not end with an answer.
    pub(super) async fn interruption(&self) -> Result<Option<&'static str>> {
        let last = self.store.load(&self.conversation, ReadRange::LastTurns(1)).await?;
        if last.open_turn.is_some() {
            return Ok(Some(
                "[the last turn was interrupted before its answer was complete; /retry asks again]",
            ));
        }
        Ok(match last_end(&last.entries) {
            Some(TurnEnd::Interrupted { .. }) => Some("[the last answer was cancelled; /retry asks again]"),
            Some(TurnEnd::Refused) => Some(
                "[the provider refused the content of the last message; it is left out of further turns]",
            ),
            Some(TurnEnd::Failed { .. }) => Some("[the last turn failed; /retry asks again]"),
            _ => None,
        })
    }
}
