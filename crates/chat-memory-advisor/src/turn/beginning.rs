use std::sync::Arc;

use advisor_core::{Message, Result, Role, TurnId};

use crate::OnBusy;
use crate::conversation::claim::Claim;
use crate::turn::close::ATTEMPTS;
use crate::turn::fork_point::Ground;
use crate::turn::opening::{Beginning, Opening, Past};
use crate::turn::prompt::Prompt;
use crate::turn::resubmitted::{StoredAnswer, used};
use crate::turn::state::TurnState;
use crate::turn::{Inner, Stage};
use conversation_store::append_once;
use conversation_store::{Batch, BatchKey, BatchStep, StoreError, Version};

/// The outcome of beginning a turn.
pub(crate) enum Begun<S> {
    /// The model is asked.
    Asking(S),
    /// The turn was answered before.
    Answered(StoredAnswer),
}

/// Begins a turn: claims and reads its conversation, and stores its input.
impl Inner {
    /// Returns the state of the turn, after storing its input unless that is done already.
    pub(crate) async fn begun<'a>(
        &self,
        stage: &'a mut Stage,
        system: &[Message],
        on_busy: Option<OnBusy>,
    ) -> Result<Begun<&'a mut TurnState>> {
        let none = match &mut stage.state {
            Some(state) => return Ok(Begun::Asking(state)),
            none => none,
        };
        stage.tried = true;
        let said = stage.said.iter().cloned().collect();
        let claim = self.hold(on_busy).await?;
        let begun = self.begin(claim, said, system).await;
        if !matches!(begun, Ok(Begun::Asking(_))) {
            self.give_lease_back().await;
        }
        match begun? {
            Begun::Asking(state) => Ok(Begun::Asking(none.insert(state))),
            Begun::Answered(answer) => {
                stage.answered = true;
                Ok(Begun::Answered(answer))
            }
        }
    }

    async fn begin(
        &self,
        mut claim: Claim,
        said: Vec<Message>,
        system: &[Message],
    ) -> Result<Begun<TurnState>> {
        let mut attempts = Attempts::of(&said);
        loop {
            let ground = self.read(&said, attempts.all).await?;
            attempts.look_at(&ground, &self.turn)?;
            let opening = match self.plan(ground, said.clone())? {
                Beginning::Asking(opening) => opening,
                Beginning::Answered(answer) => {
                    claim.beginning = None;
                    return Ok(Begun::Answered(answer));
                }
            };
            if !self.has_left(&opening) {
                claim.beginning = opening.unsure(&self.turn).or(claim.beginning.take());
            }
            if claim.is_lost() {
                return Err(StoreError::Fenced.into());
            }
            match self.append_input(&opening).await {
                Ok(version) if version == opening.end() => {
                    claim.beginning = None;
                    self.summary_is_written(&opening);
                    return Ok(Begun::Asking(self.state(claim, version, system, opening)));
                }
                outcome => attempts.go_on_after(outcome, &self.turn)?,
            }
        }
    }

    /// Checks whether an earlier run of the turn is still unfinished; this run has nothing to add to it.
    fn has_left(&self, opening: &Opening) -> bool {
        opening.again.is_some() && self.registry.left_of(&self.key, &self.turn, |_| ()).is_some()
    }

    fn plan(&self, ground: Ground, said: Vec<Message>) -> Result<Beginning> {
        let summary = self.registry.change(&self.key, |slot| slot.summary.clone());
        let Ground { snapshot, unfinished, parent } = ground;
        let past = Past { snapshot, parent, unfinished: &unfinished, summary };
        Opening::plan(&self.turn, said, past, &self.measure)
    }

    fn state(&self, claim: Claim, version: Version, system: &[Message], opening: Opening) -> TurnState {
        let prompt = Prompt::new(system.to_vec(), opening.messages, Arc::clone(&self.measure.texts))
            .following(opening.summary, opening.earlier, opening.past);
        let state = TurnState::new(claim, version, prompt).having_read(opening.read);
        let state = if opening.entries.is_empty() {
            self.registry.forget_turn(&self.key, &self.turn);
            state.following(opening.turns, opening.last_turn, opening.parent)
        } else {
            self.registry.forget_all(&self.key);
            state.following(opening.turns, Some(self.turn.clone()), None)
        };
        match opening.again {
            Some(earlier) => state.again(earlier),
            None => state,
        }
    }

    /// Closes the turns that this process left open, since a bounded store does not evict their conversations.
    pub(crate) async fn make_room(&self) {
        if let Err(error) = self.registry.close_all(&*self.store, &self.measure.texts).await {
            tracing::debug!(%error, "a dropped turn could not be closed to make room for another conversation");
        }
    }

    async fn append_input(&self, opening: &Opening) -> Result<Version, StoreError> {
        if opening.entries.is_empty() {
            return Ok(opening.version);
        }
        let key = match opening.again {
            Some(_) => BatchKey::new(self.turn.clone(), 0, BatchStep::Resumed(opening.version)),
            None => BatchKey::for_input(self.turn.clone()),
        };
        let batch = || {
            Batch::new(key.clone(), opening.entries.clone())
                .with_parent(opening.parent)
                .with_fence(self.hold.fence())
                .with_last_turn(opening.last_turn.clone())
        };
        let appended = append_once(&*self.store, &self.key, opening.version, batch()).await;
        if matches!(appended, Err(StoreError::Full { .. })) {
            self.make_room().await;
            return append_once(&*self.store, &self.key, opening.version, batch()).await;
        }
        appended
    }
}

/// The attempts of a turn to begin.
struct Attempts {
    count: usize,
    /// Whether the whole conversation is read.
    all: bool,
    /// The turn that was open at the last attempt.
    open: Option<TurnId>,
}

impl Attempts {
    fn of(said: &[Message]) -> Self {
        // A result may answer a call outside every window.
        let all = said.iter().any(|message| message.role() == Role::Tool);
        Self { count: 0, all, open: None }
    }

    /// Starts another attempt, on this state of the conversation.
    ///
    /// # Errors
    /// If another turn has begun since the first attempt.
    fn look_at(&mut self, ground: &Ground, own: &TurnId) -> Result<()> {
        self.count += 1;
        let open = ground.snapshot.open_turn.as_ref().map(|open| open.turn.clone());
        let dead = |turn: &TurnId| {
            turn == own
                || Some(turn) == self.open.as_ref()
                || ground.unfinished.iter().any(|known| known.turn == *turn)
        };
        if self.count > 1 && open.as_ref().is_some_and(|turn| !dead(turn)) {
            return Err(StoreError::Conflict { current: ground.snapshot.version }.into());
        }
        self.open = open;
        Ok(())
    }

    /// Decides whether another attempt follows this outcome of one. Returns the error if none does.
    fn go_on_after(&mut self, outcome: Result<Version, StoreError>, own: &TurnId) -> Result<()> {
        match outcome {
            // An earlier turn of this process may have written late, or the conversation was deleted.
            Err(StoreError::Conflict { .. } | StoreError::Gone) if self.count < ATTEMPTS => Ok(()),
            // The key of the input is the turn's id: the turn began before the part that was read.
            Ok(_) | Err(StoreError::KeyReused) if !self.all => {
                self.all = true;
                Ok(())
            }
            Ok(_) | Err(StoreError::KeyReused) => Err(used(own, "was begun otherwise")),
            Err(error) => Err(error.into()),
        }
    }
}
