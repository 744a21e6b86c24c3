use advisor_core::{Error, Message, Result, TurnId};

use crate::conversation::unfinished::Unfinished;
use crate::turn::Inner;
use crate::turn::reading::Reading;
use conversation_store::{Entry, EntryId, ReadRange, Snapshot, StoreError};

/// Where a turn branches off, given to the turn as an extension: the conversation goes on from there, and what came after
/// it is kept on a branch of its own.
///
/// The turn sees the conversation up to that place; its window, its repair and what it closes are of that branch.
/// From its first append on, its branch is the one that further turns go on with. A turn that was cut inside is
/// closed on the new branch as one that stopped there; on its own it stays as it is.
///
/// Submitted again under its id, the turn is found as long as its branch is the one that was written last;
/// otherwise it is refused.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the conversation has no such turn or entry.
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
/// // Said otherwise; what was said before is kept on the older branch.
/// let edited = client.prompt().user("I am Grace.").conversation("c").extension(ForkPoint::Before(first));
/// assert_eq!(edited.call().await?.text(), "Hello Grace.");
/// assert_eq!(memory.transcript(&ConversationKey::new("c")?).await?.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPoint {
    /// In the place of this turn, on whatever branch it is: to say something else, or to have the same answered
    /// again. A turn that no view of the conversation shows is looked for from the beginning of the log.
    Before(TurnId),
    /// Behind this entry: the tip of an older branch, to go on with that, or any other.
    After(EntryId),
}

/// What a turn begins on.
pub(crate) struct Ground {
    pub(crate) snapshot: Snapshot,
    /// The turns whose end is not written yet.
    pub(crate) unfinished: Vec<Unfinished>,
    /// The entry that the turn follows, where it branches off.
    pub(crate) parent: Option<EntryId>,
}

impl Inner {
    /// The conversation that a turn with this input begins on: as it was written last; or, where the turn branches off,
    /// up to that place.
    pub(crate) async fn read(&self, said: &[Message], all: bool) -> Result<Ground> {
        let last = self.read_to(None, said, all).await?;
        let Some(fork_point) = &self.fork_point else { return Ok(self.ground(last)) };
        let holds_turn = |entries: &[Entry]| entries.iter().any(|entry| entry.turn == self.turn);
        // The turn has branched off already, and is submitted again.
        if holds_turn(&last.entries) || last.open_turn.as_ref().is_some_and(|open| open.turn == self.turn) {
            return Ok(self.ground(last));
        }
        let tip = match fork_point {
            ForkPoint::After(tip) => *tip,
            ForkPoint::Before(turn) => self.before(turn, &last).await?,
        };
        self.close_other_turns().await?;
        // What was shown of a turn belongs behind its last entry, not where a branch cuts it.
        let (snapshot, unfinished) = (self.read_to(Some(tip), said, all).await?, Vec::new());
        Ok(Ground { snapshot, unfinished, parent: Some(tip) })
    }

    fn ground(&self, snapshot: Snapshot) -> Ground {
        Ground { snapshot, unfinished: self.registry.unfinished(&self.key), parent: None }
    }

    async fn read_to(&self, tip: Option<EntryId>, said: &[Message], all: bool) -> Result<Snapshot> {
        let (store, key) = (&*self.store, &self.key);
        let snapshot = match tip {
            None if all => store.load(key, ReadRange::All).await,
            Some(tip) if all => store.load_branch(key, tip, ReadRange::All).await,
            tip => {
                let reading = Reading::of(&self.measure).before(&self.turn, said);
                return self
                    .registry
                    .load(store, key, tip, &reading)
                    .await
                    .map_err(StoreError::into_load_error);
            }
        };
        let snapshot = snapshot.map_err(StoreError::into_load_error)?;
        self.registry.damaged.tell(key, &snapshot);
        Ok(snapshot)
    }

    /// The entry before a turn.
    async fn before(&self, turn: &TurnId, last: &Snapshot) -> Result<EntryId> {
        let is_begun_in = |entries: &[Entry]| {
            let place = entries.iter().position(|entry| entry.turn == *turn)?;
            entries.get(place).filter(|first| place > 0 || first.is_first()).map(Entry::follows)
        };
        if let Some(before) = is_begun_in(&last.entries) {
            return Ok(before);
        }
        let mut after = EntryId::BEGINNING;
        loop {
            let page = self.store.read(&self.key, after, PAGE).await.map_err(StoreError::into_load_error)?;
            if let Some(first) = page.iter().find(|entry| entry.turn == *turn) {
                return Ok(first.follows());
            }
            match page.last() {
                Some(last) => after = EntryId::new(last.seq),
                None => {
                    return Err(Error::configuration(format!(
                        "the conversation has no turn `{turn}` that another one could take the place of"
                    )));
                }
            }
        }
    }

    /// What dropped turns had shown belongs to their own branch, and is written there before that is left.
    async fn close_other_turns(&self) -> Result<()> {
        for unfinished in self.registry.unfinished(&self.key) {
            if unfinished.turn != self.turn {
                self.registry.seal(&*self.store, &self.key, &unfinished, &self.measure.texts).await?;
                self.registry.forget(&self.key, &unfinished);
            }
        }
        Ok(())
    }
}

/// How many entries are looked through at once.
const PAGE: usize = 256;
