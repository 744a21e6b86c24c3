//! The state of a chat: the conversation, the model, and the spent tokens.

use std::sync::Arc;

use advisor_chain::chain::TurnEnd;
use advisor_chain::memory::store::{Entry, EntryKind, ReadRange, last_end};
use advisor_chain::memory::{ConversationStore, ForkPoint};
use advisor_chain::messages::Usage;
use advisor_chain::tools::{ClientSideCall, Decision, DecisionProblem};
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatOptions, ConversationKey, Error, ErrorKind, Result, Role, TurnId,
    TurnStream,
};

use crate::journal_file::JournalFile;
use crate::printable::escaped;

/// A chat, in one conversation at a time.
pub(super) struct Session {
    pub(super) client: ChatClient,
    pub(super) memory: ChatMemoryAdvisor,
    pub(super) store: Arc<dyn ConversationStore>,
    pub(super) conversation: ConversationKey,
    pub(super) model: String,
    pub(super) spent: Spent,
    pub(super) journal: Option<JournalFile>,
}

/// The tokens of the rounds that reported them.
#[derive(Debug, Default)]
pub(super) struct Spent {
    pub(super) last_turn: Usage,
    pub(super) chat: Usage,
}

/// A question of the user, and its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) turn: TurnId,
    pub(super) text: String,
}

impl Spent {
    pub(super) fn add(&mut self, round: &Usage) {
        self.last_turn.add(round);
        self.chat.add(round);
    }
}

impl Session {
    /// Asks a question in this conversation.
    pub(super) fn ask(&mut self, text: &str) -> TurnStream {
        self.prompt(text, None)
    }

    /// Asks a question in place of another one, which stays on its own branch.
    pub(super) fn ask_in_place_of(&mut self, earlier: TurnId, text: &str) -> TurnStream {
        self.prompt(text, Some(ForkPoint::Before(earlier)))
    }

    fn prompt(&mut self, text: &str, fork: Option<ForkPoint>) -> TurnStream {
        self.spent.last_turn = Usage::default();
        let prompt = self.client.prompt().user(text).conversation(self.conversation.clone());
        let prompt = prompt.options(ChatOptions::new().with_model(self.model.as_str()));
        match fork {
            Some(fork) => prompt.extension(fork).stream(),
            None => prompt.stream(),
        }
    }

    /// Continues the conversation with decisions about the calls that wait.
    pub(super) fn resume(&mut self, decisions: Vec<Decision>) -> TurnStream {
        self.spent.last_turn = Usage::default();
        let prompt = self.client.resume(self.conversation.clone(), decisions);
        prompt.options(ChatOptions::new().with_model(self.model.as_str())).stream()
    }

    /// Returns the calls that wait for a decision.
    pub(super) async fn waiting(&self) -> Result<Vec<ClientSideCall>> {
        self.client.pending_calls(self.conversation.clone()).await
    }

    /// Checks that no call waits, where nobody can decide; see [`refuse_waiting`].
    pub(super) async fn refuse_waiting(&self) -> Result<()> {
        refuse_waiting(&self.client, &self.conversation).await
    }

    /// Returns the last question of this conversation.
    pub(super) async fn last_question(&self) -> Result<Option<Question>> {
        let log = self.store.load(&self.conversation, ReadRange::All).await?;
        Ok(log.entries.iter().rev().find_map(question))
    }

    /// Checks whether a conversation has entries.
    pub(super) async fn exists(&self, key: &ConversationKey) -> Result<bool> {
        let version = self.store.load(key, ReadRange::LastEntries(0)).await?.version;
        Ok(version.as_u64() > 0)
    }

    /// Moves to a new conversation with an unused id.
    pub(super) async fn begin_another(&mut self) -> Result<()> {
        for number in 2..u32::MAX {
            let key = ConversationKey::new(&format!("chat-{number}"))?;
            if key != self.conversation && !self.exists(&key).await? {
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

/// Checks that no call of a conversation waits for a decision.
///
/// # Errors
/// For a call that waits. A further question would answer it as not run.
pub(super) async fn refuse_waiting(client: &ChatClient, conversation: &ConversationKey) -> Result<()> {
    let waiting = client.pending_calls(conversation.clone()).await?;
    let Some(first) = waiting.first() else { return Ok(()) };
    let message = format!(
        "a call of `{}` waits for a decision; continue the conversation on a terminal, with --memory",
        escaped(&first.call.name)
    );
    Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::Missing }, message))
}

fn question(entry: &Entry) -> Option<Question> {
    match &entry.kind {
        EntryKind::Message(message) if message.role() == Role::User => {
            Some(Question { turn: entry.turn.clone(), text: message.text() })
        }
        _ => None,
    }
}
