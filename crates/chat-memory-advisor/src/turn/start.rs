//! `TurnMemoryState::ensure_started`: starts a turn: acquires and reads the conversation, stores the input, retries
//! after conflicts.

use advisor_core::{AdvisorChain, ChatRequest, Error, Message, Result, Role, TurnId};

use crate::OnOverflow;
use crate::conversation::guard::ConversationGuard;
use crate::transcript::window::Measure;
use crate::turn::close::ATTEMPTS;
use crate::turn::fork_point::Extent;
use crate::turn::resubmitted::used;
use crate::turn::start_plan::{LoadedConversation, StartOutcome, StartPlan};
use crate::turn::state::TurnState;
use crate::turn::{Stage, TurnMemoryState, several_memories};
use conversation_store::{Batch, BatchKey, BatchStep, StoreError, Version, append_once};

/// Starts a turn: acquires and reads its conversation, and stores its input.
impl TurnMemoryState {
    /// Returns the state of the turn, after storing its input `said` unless that is done already. `entered` has the request
    /// and the chain inside memory. Without it, it does not wait for the end of another turn.
    pub(crate) async fn ensure_started<'a>(
        &self,
        stage: &'a mut Stage,
        said: Vec<Message>,
        entered: Option<(&ChatRequest, &AdvisorChain)>,
    ) -> Result<StartOutcome<&'a mut TurnState>> {
        if let Stage::Waiting(_) | Stage::Starting(_) = stage {
            *stage = Stage::Starting(said.clone());
        }
        if matches!(stage, Stage::Starting(_) | Stage::Answered) {
            let guard = self.acquire(entered.map(|_| self.on_busy_at_start())).await?;
            let started = self.start(guard, said, entered).await;
            if !matches!(started, Ok(StartOutcome::Asking(_))) {
                self.release_lease().await;
            }
            let started = started?;
            self.note_receipt();
            match started {
                StartOutcome::Asking(state) => *stage = Stage::Running(state),
                StartOutcome::Answered(answer) => {
                    *stage = Stage::Answered;
                    return Ok(StartOutcome::Answered(answer));
                }
            }
        }
        match stage {
            Stage::Running(state) => Ok(StartOutcome::Asking(state)),
            _ => Err(several_memories()),
        }
    }

    async fn start(
        &self,
        guard: ConversationGuard,
        said: Vec<Message>,
        entered: Option<(&ChatRequest, &AdvisorChain)>,
    ) -> Result<StartOutcome<TurnState>> {
        if let Some((decisions, (request, next))) = self.decisions.as_ref().zip(entered) {
            // Boxed, so that other turns do not carry its state.
            Box::pin(self.apply_decisions(decisions, request, next)).await?;
        }
        let said = self.decided_results().chain(said).collect();
        let system = entered.map(|(request, _)| request.messages.split_system().0).unwrap_or_default();
        self.store_input(guard, said, &system).await
    }

    /// Stores the input behind the conversation as it is read.
    async fn store_input(
        &self,
        mut guard: ConversationGuard,
        said: Vec<Message>,
        system: &[Message],
    ) -> Result<StartOutcome<TurnState>> {
        let mut attempts = Attempts::for_input(&said);
        loop {
            let loaded = self.read(&said, attempts.extent).await?;
            attempts.check_loaded(&loaded, &self.turn)?;
            self.check_asked(&loaded.snapshot)?;
            let (planned, too_large) = self.plan(said.clone(), loaded)?;
            let plan = match planned {
                StartOutcome::Asking(plan) => plan,
                StartOutcome::Answered(answer) => {
                    guard.unconfirmed = None;
                    return Ok(StartOutcome::Answered(answer));
                }
            };
            if !self.has_unfinished_run(&plan) {
                guard.unconfirmed = plan.unsure(&self.turn).or(guard.unconfirmed.take());
            }
            if guard.lock.is_lost() {
                return Err(StoreError::Fenced.into());
            }
            match self.append_input(&plan).await {
                Ok(version) if version == plan.end() => {
                    self.summary_is_written(&plan);
                    self.note_results_stored();
                    if let Some(error) = too_large {
                        // The guard has the turn as unconfirmed, so its end is written.
                        return Err(error);
                    }
                    guard.unconfirmed = None;
                    return Ok(StartOutcome::Asking(self.state(guard, version, system, plan)));
                }
                outcome => attempts.retry_after_append(outcome, &self.turn)?,
            }
        }
    }

    /// Plans the start. Results of calls that have run are stored even if the turn is too large for the model; this error
    /// is returned, too.
    fn plan(
        &self,
        said: Vec<Message>,
        loaded: LoadedConversation,
    ) -> Result<(StartOutcome<StartPlan>, Option<Error>)> {
        let has_run = self.decided_results().next().is_some();
        let again = has_run.then(|| loaded.clone());
        match (StartPlan::plan(&self.turn, said.clone(), loaded, &self.measure), again) {
            // Any other error comes again.
            (Err(error), Some(loaded)) => {
                let measure = Measure { on_overflow: OnOverflow::Send, ..self.measure.clone() };
                Ok((StartPlan::plan(&self.turn, said, loaded, &measure)?, Some(error)))
            }
            (planned, _) => Ok((planned?, None)),
        }
    }

    /// Checks whether an earlier run of the turn is still unfinished; this run has nothing to add to it.
    fn has_unfinished_run(&self, plan: &StartPlan) -> bool {
        plan.earlier_run.is_some() && self.registry.unfinished.any(&self.key, |known| known.turn == self.turn)
    }

    fn state(
        &self,
        guard: ConversationGuard,
        version: Version,
        system: &[Message],
        plan: StartPlan,
    ) -> TurnState {
        let prompt = plan.prompt(system, &self.measure).with_past(plan.past);
        let (last_turn, parent) = if plan.entries.is_empty() {
            self.registry.unfinished.forget_turn(&self.key, &self.turn);
            (plan.last_turn, plan.parent)
        } else {
            self.registry.unfinished.forget_all(&self.key);
            (Some(self.turn.clone()), None)
        };
        let state = TurnState::new(guard, version, prompt, plan.earlier_run);
        TurnState { turns: plan.turns, read: plan.read, last_turn, parent, ..state }
    }

    async fn append_input(&self, plan: &StartPlan) -> Result<Version, StoreError> {
        if plan.entries.is_empty() {
            return Ok(plan.version);
        }
        let key = match plan.earlier_run {
            Some(_) => BatchKey::new(self.turn.clone(), 0, BatchStep::Resumed(plan.version)),
            None => BatchKey::for_input(self.turn.clone()),
        };
        let batch = || {
            Batch::new(key.clone(), plan.entries.clone())
                .with_parent(plan.parent)
                .with_token(self.lease.token())
                .with_last_turn(plan.last_turn.clone())
        };
        let appended = append_once(&*self.store, &self.key, plan.version, batch()).await;
        if matches!(appended, Err(StoreError::Full { .. })) {
            self.make_room().await;
            return append_once(&*self.store, &self.key, plan.version, batch()).await;
        }
        appended
    }
}

/// The attempts of a turn to begin.
struct Attempts {
    count: usize,
    extent: Extent,
    /// The turn that was open at the last attempt.
    open: Option<TurnId>,
}

impl Attempts {
    fn for_input(said: &[Message]) -> Self {
        // A result may answer a call outside every window.
        let has_results = said.iter().any(|message| message.role() == Role::Tool);
        let extent = if has_results { Extent::Whole } else { Extent::Window };
        Self { count: 0, extent, open: None }
    }

    /// Starts another attempt, on this state of the conversation.
    ///
    /// # Errors
    /// If another turn has begun since the first attempt.
    fn check_loaded(&mut self, loaded: &LoadedConversation, own: &TurnId) -> Result<()> {
        self.count += 1;
        let open = loaded.snapshot.open_turn.as_ref().map(|open| open.turn.clone());
        let dead = |turn: &TurnId| {
            turn == own
                || Some(turn) == self.open.as_ref()
                || loaded.unfinished.iter().any(|known| known.turn == *turn)
        };
        if self.count > 1 && open.as_ref().is_some_and(|turn| !dead(turn)) {
            return Err(StoreError::Conflict { current: loaded.snapshot.version }.into());
        }
        self.open = open;
        Ok(())
    }

    /// Decides whether another attempt follows this outcome of one. Returns the error if none does.
    fn retry_after_append(&mut self, outcome: Result<Version, StoreError>, own: &TurnId) -> Result<()> {
        match outcome {
            // An earlier turn of this process may have written late, or the conversation was deleted.
            Err(StoreError::Conflict { .. } | StoreError::Gone) if self.count < ATTEMPTS => Ok(()),
            // The key of the input is the turn's id: the turn began before the part that was read.
            Ok(_) | Err(StoreError::KeyReused) if self.extent == Extent::Window => {
                self.extent = Extent::Whole;
                Ok(())
            }
            Ok(_) | Err(StoreError::KeyReused) => Err(used(own, "was begun otherwise")),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
