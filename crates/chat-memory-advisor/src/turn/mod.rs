//! `TurnMemory` and `TurnMemoryState`: memory of one turn; stores answers and repeats uncertain appends (`catch_up`).

pub(crate) mod client_side;
pub(crate) mod close;
pub(crate) mod closing_entries;
pub(crate) mod fork_point;
pub(crate) mod lease_keeper;
pub(crate) mod prompt;
pub(crate) mod reading;
pub(crate) mod reading_on;
pub(crate) mod recorder;
pub(crate) mod resubmitted;
pub(crate) mod start;
pub(crate) mod start_plan;
pub(crate) mod state;
pub(crate) mod summarizing;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, ChatRequest, ChatResponse, ConversationKey, Decisions, Error, ErrorKind, FinishReason,
    Message, Result, TurnEnd, TurnId,
};
use tokio::sync::Mutex;

use crate::conversation::Registry;
use crate::conversation::lease_state::LeaseState;
use crate::settings::Settings;
use crate::transcript::window::Measure;
use crate::turn::client_side::decided_results::DecidedResults;
use crate::turn::start_plan::StartOutcome;
use crate::turn::state::{Life, TurnState, Write};
use crate::{ForkPoint, MemoryReceipt, OnBusy};
use conversation_store::{Batch, ConversationStore, RoundStep, StoreError, append_once};

/// The memory of one turn, from its first request to its end. It is an extension and a recorder of its
/// [`Turn`](advisor_core::Turn).
#[derive(Clone)]
pub(crate) struct TurnMemory(pub(crate) Arc<TurnMemoryState>);

pub(crate) struct TurnMemoryState {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) measure: Measure,
    pub(crate) on_busy: OnBusy,
    pub(crate) lease_ttl: Duration,
    pub(crate) key: ConversationKey,
    pub(crate) turn: TurnId,
    pub(crate) fork_point: Option<ForkPoint>,
    /// The decisions with which the turn begins.
    pub(crate) decisions: Option<Decisions>,
    receipt: Option<MemoryReceipt>,
    /// The results of the decided calls, once these ran.
    pub(crate) results: OnceLock<DecidedResults>,
    pub(crate) lease: Arc<LeaseState>,
    /// Held across appends, so that the writes of a turn keep their order. Of the other mutexes of this crate, only that of a
    /// lease's renewal is held across an `await`.
    pub(crate) stage: Mutex<Stage>,
    /// Whether a tool loop or a root announces the end of the turn.
    is_announced: AtomicBool,
}

/// The progress of memory with a turn.
#[expect(clippy::large_enum_variant, reason = "every turn whose beginning is stored reaches this variant")]
pub(crate) enum Stage {
    /// Storing was not attempted. The messages that the turn begins with, as far as memory has received them.
    Waiting(Vec<Message>),
    /// Storing these messages was attempted.
    Starting(Vec<Message>),
    /// The beginning of the turn is stored.
    Running(TurnState),
    /// The turn was answered before it was submitted again, so that nothing is to be stored.
    Answered,
    /// Another memory of the same turn has taken over, in another conversation.
    Retired,
}

impl TurnMemory {
    /// Returns the memory of the turn of this request. Creates and registers it on first use.
    pub(crate) fn for_request(settings: &Settings, request: &ChatRequest) -> Result<Self> {
        let Some(key) = &request.conversation else {
            return Err(Error::configuration(
                "the turn has no conversation to be remembered in; name one with `conversation`, or leave the memory out of the chain",
            ));
        };
        let known: Option<Self> = request.turn.extensions().get();
        let known = known.filter(|known| known.0.key == *key || !known.retire());
        let memory = known.unwrap_or_else(|| {
            let memory = Self::new(settings, request, key.clone());
            request.turn.extensions().insert(memory.clone());
            request.turn.add_recorder(Arc::new(memory.clone()));
            if memory.0.store.leases().is_some() {
                request.turn.attach(Arc::clone(&memory.0).keep_lease());
            }
            memory
        });
        if memory.0.key != *key || !Arc::ptr_eq(&memory.0.registry, &settings.registry) {
            return Err(several_memories());
        }
        Ok(memory)
    }

    pub(crate) fn new(settings: &Settings, request: &ChatRequest, key: ConversationKey) -> Self {
        let said = request.messages.split_system().1;
        Self(Arc::new(TurnMemoryState {
            store: settings.store(),
            registry: Arc::clone(&settings.registry),
            measure: settings.measure.clone(),
            on_busy: settings.on_busy,
            lease_ttl: settings.lease_ttl,
            key,
            turn: request.turn.id().clone(),
            fork_point: request.turn.extensions().get(),
            decisions: request.turn.extensions().get(),
            receipt: request.turn.extensions().get(),
            results: OnceLock::new(),
            lease: Arc::new(LeaseState::new(&request.turn)),
            stage: Mutex::new(Stage::Waiting(said)),
            is_announced: AtomicBool::new(request.turn.input().is_some()),
        }))
    }

    /// Retires for a memory in another conversation, unless storing was attempted here. Returns whether it did.
    fn retire(&self) -> bool {
        let Ok(mut stage) = self.0.stage.try_lock() else { return false };
        let retires = matches!(*stage, Stage::Waiting(_) | Stage::Retired);
        if retires {
            *stage = Stage::Retired;
        }
        retires
    }

    /// Notes that a tool loop outside memory begins.
    pub(crate) fn on_loop_start(&self) {
        self.0.is_announced.store(true, Ordering::Relaxed);
    }

    /// Begins or continues the turn for a request on its way inwards, and replaces its messages with the prompt.
    /// Returns the answer if the turn, submitted again, has one.
    pub(crate) async fn enter(
        &self,
        request: &mut ChatRequest,
        next: &AdvisorChain,
    ) -> Result<Option<ChatResponse>> {
        let mut stage = self.0.stage.lock().await;
        let (system, said) = request.messages.split_system();
        let state = match &mut *stage {
            Stage::Running(state) => {
                self.0.continue_turn(state, said).await?;
                state
            }
            stage => match self.0.ensure_started(stage, said, Some((request, next))).await? {
                StartOutcome::Asking(state) => {
                    state.report_earlier_run(&request.turn);
                    state
                }
                StartOutcome::Answered(answer) => return Ok(Some(answer.into_response(&request.turn))),
            },
        };
        self.0.fit(state).await?;
        state.prompt.note_asked();
        request.messages = state.prompt.messages(system);
        Ok(None)
    }

    /// Stores an answer that came out, with the end of the turn unless the turn continues.
    pub(crate) async fn answered(&self, response: &ChatResponse) -> Result<()> {
        let mut stage = self.0.stage.lock().await;
        let Stage::Running(state) = &mut *stage else { return Ok(()) };
        self.0.catch_up(state).await?;
        // If memory is outside the loop, the loop has announced everything by now.
        if matches!(state.life, Life::Ended(_)) {
            return Ok(());
        }
        let reason = &response.finish().reason;
        let goes_on = response.tool_calls().next().is_some() || *reason == FinishReason::Paused;
        let is_announced = self.0.is_announced.load(Ordering::Relaxed);
        let addition = state.prompt.add([response.message().clone()]);
        if addition.stored.is_empty() && is_announced {
            // Nothing is to be stored. If the turn ends with this answer, the loop or the root announces the end.
            state.prompt.apply(addition);
            return Ok(());
        }
        let mut write = Write::new(response.round(), RoundStep::Answer, addition).answering();
        if !goes_on {
            write = write.ending(TurnEnd::Completed(reason.clone()));
        }
        self.0.write(state, write).await?;
        if !goes_on && !is_announced {
            self.0.release(&state.guard).await;
            self.0.summarize_later(state.turns);
        }
        Ok(())
    }
}

impl TurnMemoryState {
    /// Notes that memory has the turn.
    pub(crate) fn note_receipt(&self) {
        if let Some(receipt) = &self.receipt {
            receipt.note_turn();
        }
    }

    async fn continue_turn(&self, state: &mut TurnState, said: Vec<Message>) -> Result<()> {
        self.catch_up(state).await?;
        self.reopen(state).await?;
        state.passes = state.passes.saturating_add(1);
        let mut addition = state.prompt.add(said);
        addition.settle();
        let write = Write::new(state.passes, RoundStep::Input, addition);
        self.write(state, write).await
    }

    /// Makes a turn that continues after its end the running one again.
    pub(crate) async fn reopen(&self, state: &mut TurnState) -> Result<()> {
        if matches!(state.life, Life::Running { .. }) {
            return Ok(());
        }
        self.reacquire(&state.guard).await?;
        self.registry.unfinished.forget_turn(&self.key, &self.turn);
        state.life = Life::Running { after_end: state.life.has_stored_end() };
        Ok(())
    }

    /// Appends new entries, if any, and updates the state afterwards.
    pub(crate) async fn write(&self, state: &mut TurnState, write: Write) -> Result<()> {
        if write.len() == 0 {
            state.note_stored(write);
            return Ok(());
        }
        state.set_pending(&self.turn, write);
        self.catch_up(state).await
    }

    /// Appends the pending write. A write that failed or was dropped before its confirmation is retried. Its key
    /// makes that safe, and an earlier attempt cannot take effect after the retry.
    pub(crate) async fn catch_up(&self, state: &mut TurnState) -> Result<()> {
        let Some(pending) = &mut state.pending else { return Ok(()) };
        if state.guard.lock.is_lost() {
            return Err(StoreError::Fenced.into());
        }
        let unsure = std::mem::replace(&mut pending.unsure, true);
        let batch = Batch::new(pending.key.clone(), pending.write.entries(&self.turn))
            .with_token(self.lease.token())
            .with_last_turn(state.last_turn.clone())
            .with_parent(state.parent);
        let outcome = append_once(&*self.store, &self.key, state.version, batch).await;
        let unknown = match &outcome {
            Err(StoreError::OutcomeUnknown { .. }) => true,
            Err(StoreError::Unavailable { .. }) => unsure,
            _ => false,
        };
        if !unknown
            && let Some(pending) = state.pending.take()
            && outcome.is_ok()
        {
            (state.last_turn, state.parent) = (Some(self.turn.clone()), None);
            state.note_stored(pending.write);
        }
        outcome.map(drop).map_err(Error::from)
    }
}

pub(crate) fn busy() -> Error {
    Error::new(
        ErrorKind::ConversationBusy,
        "another turn of this conversation is running or waiting; wait for its end or cancel it, then ask again",
    )
}

pub(crate) fn several_memories() -> Error {
    Error::configuration(
        "a turn is stored by one memory, in one conversation; run an inner client in a separate turn",
    )
}

impl fmt::Debug for TurnMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnMemory")
            .field("conversation", &self.0.key)
            .field("turn", &self.0.turn)
            .finish_non_exhaustive()
    }
}
