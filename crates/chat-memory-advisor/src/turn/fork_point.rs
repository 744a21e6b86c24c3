//! `ForkPoint`, a turn extension with the fork point; loads the conversation up to it.

use advisor_core::{Error, Message, Result, TurnId};

use crate::transcript::summary::Pending;
use crate::turn::TurnMemoryState;
use crate::turn::reading::{Reading, find_in_log};
use crate::turn::start_plan::LoadedConversation;
use conversation_store::{Entry, EntryId, ReadRange, Snapshot, StoreError};

/// The place where a turn forks off, given to the turn as an extension. The conversation continues from there, and
/// later entries stay on a separate branch.
///
/// The turn sees the conversation up to that place; its window, its repair and its closing entries belong to that
/// branch. From its first append on, further turns continue its branch. If the fork cuts a turn, that turn is
/// closed on the new branch as one that stopped there. On its own branch it stays as it is.
///
/// A turn that is submitted again under its id is found as long as its branch is the one written last; otherwise
/// it is refused.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the conversation has no such turn or
/// entry.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ConversationKey, TurnId};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::{ForkPoint, ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
/// let model = ScriptedModel::new(["Hello Ada.", "Hello Grace."].map(Answer::from_text));
/// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
/// let first = TurnId::new("first")?;
/// client.prompt().user("I am Ada.").conversation("c").turn(first.clone()).call().await?;
///
/// // Edits the message. The earlier one is kept on the older branch.
/// let edited = client.prompt().user("I am Grace.").conversation("c").extension(ForkPoint::Before(first));
/// assert_eq!(edited.call().await?.text(), "Hello Grace.");
/// assert_eq!(memory.transcript(&ConversationKey::new("c")?).await?.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPoint {
    /// In place of this turn, on any branch: to send another input, or to have the same one answered again. A turn
    /// outside the part that was read is searched from the beginning of the log.
    ///
    /// The model does not see the turn that is replaced. So it may call a tool again whose effect that turn had,
    /// such as a refund: [`Effect::AtMostOnce`](advisor_core::Effect) holds for each call.
    Before(TurnId),
    /// After this entry: the tip of an older branch, to continue that branch, or any other entry.
    After(EntryId),
}

/// The part of a conversation that a turn reads when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The entries that the turn sends.
    Window,
    Whole,
}

impl TurnMemoryState {
    /// Reads the conversation that a turn with this input begins on: up to its last entry, or up to the fork
    /// point.
    pub(crate) async fn read(&self, said: &[Message], extent: Extent) -> Result<LoadedConversation> {
        let last = self.read_to(None, said, extent).await?;
        let Some(fork_point) = &self.fork_point else { return Ok(self.unforked(last)) };
        let holds_turn = |entries: &[Entry]| entries.iter().any(|entry| entry.turn == self.turn);
        // The turn has forked off already, and is submitted again.
        if holds_turn(&last.entries) || last.open_turn.as_ref().is_some_and(|open| open.turn == self.turn) {
            return Ok(self.unforked(last));
        }
        let tip = match fork_point {
            ForkPoint::After(tip) => *tip,
            ForkPoint::Before(turn) => self.before(turn, &last).await?,
        };
        self.close_other_turns().await?;
        // The shown text of a turn belongs after its last entry, not where a branch cuts it.
        let (snapshot, unfinished) = (self.read_to(Some(tip), said, extent).await?, Vec::new());
        Ok(LoadedConversation { snapshot, parent: Some(tip), unfinished, summary: self.unwritten_summary() })
    }

    fn unforked(&self, snapshot: Snapshot) -> LoadedConversation {
        let unfinished = self.registry.unfinished.turns_in(&self.key);
        LoadedConversation { snapshot, parent: None, unfinished, summary: self.unwritten_summary() }
    }

    fn unwritten_summary(&self) -> Option<Pending> {
        self.registry.summaries.pending(&self.key)
    }

    async fn read_to(&self, tip: Option<EntryId>, said: &[Message], extent: Extent) -> Result<Snapshot> {
        let (store, key) = (&*self.store, &self.key);
        let snapshot = match tip {
            None if extent == Extent::Whole => store.load(key, ReadRange::All).await,
            Some(tip) if extent == Extent::Whole => store.load_branch(key, tip, ReadRange::All).await,
            tip => {
                let reading = Reading::new(&self.measure).before(&self.turn, said);
                return self
                    .registry
                    .load(store, key, tip, &reading)
                    .await
                    .map_err(StoreError::into_load_error);
            }
        };
        let snapshot = snapshot.map_err(StoreError::into_load_error)?;
        self.registry.damaged.warn(key, &snapshot);
        Ok(snapshot)
    }

    /// Returns the entry before a turn.
    async fn before(&self, turn: &TurnId, last: &Snapshot) -> Result<EntryId> {
        let is_begun_in = |entries: &[Entry]| {
            let place = entries.iter().position(|entry| entry.turn == *turn)?;
            entries.get(place).filter(|first| place > 0 || first.is_first()).map(Entry::follows)
        };
        if let Some(before) = is_begun_in(&last.entries) {
            return Ok(before);
        }
        let begins = |entry: &Entry| (entry.turn == *turn).then(|| entry.follows());
        let before = find_in_log(&*self.store, &self.key, EntryId::BEGINNING, begins).await;
        before.map_err(StoreError::into_load_error)?.ok_or_else(|| {
            Error::configuration(format!(
                "the conversation has no turn `{turn}` that another turn could replace"
            ))
        })
    }

    /// Closes dropped turns on their own branch, with the text they had shown, before the turn forks off.
    async fn close_other_turns(&self) -> Result<()> {
        for unfinished in self.registry.unfinished.turns_in(&self.key) {
            if unfinished.turn != self.turn {
                self.registry.try_close(&*self.store, &self.key, &unfinished, &self.measure.texts).await?;
                self.registry.unfinished.forget(&self.key, &unfinished);
            }
        }
        Ok(())
    }
}
