//! Turns of other processes, which a relay shows.

use std::sync::{Arc, OnceLock};

use advisor_core::{ConversationKey, OnDrop, Result, SharedTurn, TurnId};
use futures::StreamExt;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tracing::Instrument;

use super::relaying::{RelayOutcome, Relaying};
use super::{Asked, IdOrigin, TurnKey, Turns, reused};
use crate::refusal::{Refusal, log_failure};
use crate::relay::link::RelayLink;
use crate::relay::reader::{POLL_INTERVAL, TurnReading, read_remote};
use crate::relay::{Begun, RunState, TurnRun};

/// The place of a turn: this process or another one.
pub(super) enum TurnPlace {
    /// The turn may start here. It is relayed if the server has a relay.
    Here(Option<Relaying>),
    Elsewhere(TurnReading),
}

/// The outcome of the relaying of a turn, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Relayed(Arc<OnceLock<RelayOutcome>>);

impl Relayed {
    /// Checks whether the relay has had the end of the turn.
    pub(super) fn has_end(&self) -> bool {
        self.0.get() == Some(&RelayOutcome::Whole)
    }

    /// Checks whether another process owns the turn, and this one runs a copy: the relay was too slow to prevent it.
    pub(super) fn is_copy(&self) -> bool {
        self.0.get() == Some(&RelayOutcome::Copy)
    }
}

impl Turns {
    /// Looks for the turn in other processes. A relay that does not answer keeps no turn from starting.
    pub(super) async fn claim(&self, asked: &Asked<'_>) -> Result<TurnPlace, Refusal> {
        let Some(link) = &self.relay else { return Ok(TurnPlace::Here(None)) };
        let (conversation, turn) = asked.key;
        // Besides the chunks, there are the begin and perhaps an error.
        let kept = self.limits.kept_chunks.saturating_add(2);
        let run = TurnRun::new(conversation.clone(), turn.clone(), asked.input, kept);
        let mut relaying = Relaying::new(link, run);
        // No other process can have an id that the server has made.
        if asked.id == IdOrigin::Client
            && let Some(Begun::Elsewhere { input }) = relaying.claim(link, self.relaying.subscribe()).await
        {
            if input != asked.input {
                return Err(reused());
            }
            let reading =
                read_remote(link, conversation, turn).await.map_err(|error| relay_failed(&error))?;
            if let Some(reading) = reading {
                return Ok(TurnPlace::Elsewhere(reading));
            }
        }
        Ok(TurnPlace::Here(Some(relaying)))
    }

    /// Relays a turn of this process, in a task that neither delays nor fails it.
    pub(super) fn relay(&self, relaying: Relaying, turn: SharedTurn) -> Relayed {
        let (counted, relayed) = (self.relaying.subscribe(), Relayed::default());
        let (at_end, unrelayed) = (relayed.clone(), Arc::clone(&self.unrelayed));
        let work = async move {
            let outcome = tokio::select! {
                biased;
                outcome = relaying.run(turn.clone()) => outcome,
                () = surplus(&turn, &unrelayed) => RelayOutcome::Broken,
            };
            let _ = at_end.0.set(outcome);
            drop(counted);
        };
        drop(tokio::spawn(work.in_current_span()));
        relayed
    }

    /// Removes an ended turn that the relay had to its end, and has no longer: its conversation was deleted in another
    /// process, or it has expired.
    pub(super) async fn forget_expired(&self, key: &TurnKey) {
        let Some(link) = self.relay.as_ref().filter(|_| self.was_relayed(key)) else { return };
        if let Ok(None) = link.read(&key.0, &key.1, u64::MAX).await {
            self.remove(key);
        }
    }

    /// Waits until the relay has all turns that have ended.
    pub(crate) async fn relayed(&self) {
        self.relaying.closed().await;
    }

    /// Returns the turn of a conversation that runs, in any process.
    ///
    /// # Errors
    /// If no turn runs here and the relay fails.
    pub(crate) async fn running(&self, conversation: &ConversationKey) -> Result<Option<TurnId>, Refusal> {
        match (self.running_here(conversation), &self.relay) {
            (Some((turn, _)), _) => Ok(Some(turn)),
            (None, None) => Ok(None),
            (None, Some(link)) => self.running_elsewhere(link, conversation).await,
        }
    }

    /// Returns the turn that runs in another process. The relay may not know yet that one of this process has ended.
    async fn running_elsewhere(
        &self,
        link: &RelayLink,
        conversation: &ConversationKey,
    ) -> Result<Option<TurnId>, Refusal> {
        let running = link.running(conversation).await.map_err(|error| relay_failed(&error))?;
        Ok(running.filter(|turn| self.find(&(conversation.clone(), turn.clone())).is_none()))
    }

    /// Reads a turn that runs or has ended lately, in any process.
    ///
    /// # Errors
    /// If this process does not know the turn and the relay fails.
    pub(crate) async fn join(&self, key: &TurnKey) -> Result<Option<TurnReading>, Refusal> {
        self.forget_expired(key).await;
        match (self.find(key), &self.relay) {
            (Some(turn), _) => Ok(Some(turn.read().boxed())),
            (None, None) => Ok(None),
            (None, Some(link)) => {
                read_remote(link, &key.0, &key.1).await.map_err(|error| relay_failed(&error))
            }
        }
    }

    /// Stops the running turn of a conversation, in any process, and waits until its end is written, or until its process
    /// counts as dead.
    ///
    /// # Errors
    /// If no turn runs here and the relay fails.
    pub(crate) async fn stop(&self, conversation: &ConversationKey) -> Result<(), Refusal> {
        if let Some((_, turn)) = self.running_here(conversation) {
            turn.handle().cancel(OnDrop::KeepPartial);
            turn.handle().settled().await;
            return Ok(());
        }
        let Some(link) = &self.relay else { return Ok(()) };
        let Some(turn) = self.running_elsewhere(link, conversation).await? else { return Ok(()) };
        self.stop_copy(&(conversation.clone(), turn.clone()));
        link.stop(conversation, &turn).await.map_err(|error| relay_failed(&error))?;
        while is_running(link, conversation, &turn).await? {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Removes the turns of a deleted conversation, so that nobody reads or joins them.
    ///
    /// A relay that fails keeps them until they expire.
    pub(crate) async fn forget(&self, conversation: &ConversationKey) {
        self.forget_here(conversation);
        if let Some(link) = &self.relay
            && let Err(error) = link.forget(conversation).await
        {
            log_failure(&error);
        }
    }
}

/// Waits until the turn has ended, if then too many ended turns wait for the relay.
async fn surplus(turn: &SharedTurn, unrelayed: &Semaphore) {
    turn.handle().settled().await;
    if let Ok(_place) = unrelayed.try_acquire() {
        std::future::pending().await
    }
}

/// Checks whether the process of a turn is alive, and the turn has not ended.
async fn is_running(
    link: &RelayLink,
    conversation: &ConversationKey,
    turn: &TurnId,
) -> Result<bool, Refusal> {
    let page = link.read(conversation, turn, u64::MAX).await.map_err(|error| relay_failed(&error))?;
    Ok(page.is_some_and(|page| page.state == RunState::Running))
}

/// Returns the refusal of a request that needs the relay.
fn relay_failed(error: &advisor_core::Error) -> Refusal {
    log_failure(error);
    Refusal::no_relay()
}
