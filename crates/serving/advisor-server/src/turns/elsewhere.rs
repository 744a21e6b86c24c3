//! Turns of other processes, which a relay shows.

use std::sync::Arc;

use advisor_core::{ConversationKey, Error, OnDrop, Result, TurnId};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use super::relaying::{RelayOutcome, Relaying};
use super::run::Run;
use super::{Asked, IdOrigin, TurnKey, Turns, owned, reused};
use crate::refusal::{Refusal, log_failure};
use crate::relay::reader::{POLL_INTERVAL, RelayLink, read_remote};
use crate::relay::{Begun, RunState, TurnRun};
use crate::shared_turn::{SharedTurn, TurnReading};

/// The place of a turn: this process or another one.
pub(super) enum TurnPlace {
    /// The turn may start here. It is relayed if the server has a relay.
    Here(Option<Relaying>),
    Elsewhere(TurnReading),
}

/// The outcome of the relaying of a turn, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Relayed(Arc<watch::Sender<Option<RelayOutcome>>>);

impl Relayed {
    /// Checks whether this is the outcome of the same run.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Checks whether there is an outcome.
    fn is_known(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Checks whether the relay has had the end of the turn.
    pub(super) fn has_end(&self) -> bool {
        *self.0.borrow() == Some(RelayOutcome::Whole)
    }

    /// Waits until there is an outcome.
    async fn known(&self) {
        // The sender is in `self`, so it is not gone.
        drop(self.0.subscribe().wait_for(Option::is_some).await);
    }

    /// Checks whether another process owns the turn, and this one runs a copy: the relay was too slow to prevent it.
    pub(super) fn is_copy(&self) -> bool {
        *self.0.borrow() == Some(RelayOutcome::Copy)
    }
}

impl Turns {
    /// Waits until a void turn has ended, here and for the relay. It can then begin again.
    pub(super) async fn let_void_end(&self, key: &TurnKey) {
        let Some(entry) = self.entry(key).filter(|entry| entry.run.is_void()) else { return };
        entry.run.turn.handle().settled().await;
        if self.relay.is_some() {
            let _ = timeout(self.limits.relay_timeout, entry.relayed.known()).await;
        }
    }

    /// Looks for the turn in other processes. A relay that does not answer keeps no turn from starting.
    pub(super) async fn claim(&self, asked: &Asked<'_>) -> Result<TurnPlace, Refusal> {
        let Some(link) = &self.relay else { return Ok(TurnPlace::Here(None)) };
        let (conversation, turn) = asked.key;
        // Besides the chunks, there are the begin and perhaps an error.
        let kept = self.limits.kept_chunks.saturating_add(2);
        let run = TurnRun::new(conversation.clone(), turn.clone(), asked.input, kept);
        let mut relaying = Relaying::new(link, run);
        // No other process can have an id that the server has made.
        if asked.id != IdOrigin::Server
            && let Some(Begun::Elsewhere { input }) = relaying.claim(link, self.relaying.subscribe()).await
        {
            if input != asked.input && asked.id != IdOrigin::Memory {
                return Err(reused());
            }
            if let Some(reading) = read_remote(link, conversation, turn).await.map_err(relay_failed)? {
                return Ok(TurnPlace::Elsewhere(reading));
            }
        }
        Ok(TurnPlace::Here(Some(relaying)))
    }

    /// Relays a turn of this process, in a task that neither delays nor fails it.
    pub(super) fn relay(&self, relaying: Relaying, run: Run) -> Relayed {
        let (counted, relayed) = (self.relaying.subscribe(), Relayed::default());
        let (at_end, unrelayed) = (relayed.clone(), Arc::clone(&self.unrelayed));
        let work = async move {
            let outcome = tokio::select! {
                biased;
                outcome = relaying.run(run.clone()) => outcome,
                () = surplus(&run.turn, &unrelayed) => RelayOutcome::Broken,
            };
            at_end.0.send_replace(Some(outcome));
            drop(counted);
        };
        drop(tokio::spawn(work.in_current_span()));
        relayed
    }

    /// Removes an ended turn that the relay had to its end, and may have otherwise now: its conversation was deleted in
    /// another process, it has expired, or it was void and has begun again.
    pub(super) async fn forget_expired(&self, key: &TurnKey) {
        let entry = self.entry(key).filter(|entry| entry.relayed.has_end());
        let (Some(link), Some(entry)) = (&self.relay, entry) else { return };
        if entry.run.is_void()
            || matches!(link.ask(|relay| relay.read(&key.0, &key.1, u64::MAX)).await, Ok(None))
        {
            self.remove(key, &entry);
        }
    }

    /// Waits until the relay has all turns that have ended.
    pub(crate) async fn relayed(&self) {
        self.relaying.closed().await;
    }

    /// Returns the turn of a conversation that runs, in any process. Of several, which wait for one another, it is the
    /// one of this process that memory has, else the oldest one.
    ///
    /// # Errors
    /// If no turn runs here and the relay fails.
    pub(crate) async fn running(&self, conversation: &ConversationKey) -> Result<Option<TurnId>, Refusal> {
        let here = self.running_here(conversation);
        if let Some((turn, _)) = here.iter().find(|(_, run)| run.receipt.has_turn()) {
            return Ok(Some(turn.clone()));
        }
        let oldest = self.running_by_relay(conversation).await.map(|running| running.into_iter().next());
        match here.into_iter().next() {
            Some((turn, _)) => Ok(oldest.ok().flatten().or(Some(turn))),
            None => oldest,
        }
    }

    /// Returns the turns that run in other processes.
    async fn running_elsewhere(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, Refusal> {
        let mut running = self.running_by_relay(conversation).await?;
        let here = self.running_here(conversation);
        running.retain(|turn| here.iter().all(|(own, _)| own != turn));
        Ok(running)
    }

    /// Returns the turns that run in any process, the oldest one first, as the relay knows them. It may not know yet that
    /// one of this process has begun or ended.
    async fn running_by_relay(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, Refusal> {
        let Some(link) = &self.relay else { return Ok(Vec::new()) };
        let mut running = link.ask(|relay| relay.running(conversation)).await.map_err(relay_failed)?;
        let known = self.lock();
        running.retain(|turn| {
            let owned = owned(&known, &(conversation.clone(), turn.clone()));
            owned.is_none_or(|entry| {
                // A void one may have begun again elsewhere.
                !entry.run.turn.has_ended() || (entry.run.is_void() && entry.relayed.is_known())
            })
        });
        Ok(running)
    }

    /// Reads a turn that runs or has ended lately, in any process.
    ///
    /// # Errors
    /// If this process does not know the turn and the relay fails.
    pub(crate) async fn join(&self, key: &TurnKey) -> Result<Option<TurnReading>, Refusal> {
        self.forget_expired(key).await;
        let here = owned(&self.lock(), key).map(|entry| entry.run.turn.join());
        match (here, &self.relay) {
            (Some(reader), _) => Ok(Some(reader.into_stream())),
            (None, None) => Ok(None),
            (None, Some(link)) => read_remote(link, &key.0, &key.1).await.map_err(relay_failed),
        }
    }

    /// Stops the turns of a conversation that run or wait, in any process. Waits until their ends are written, or until
    /// their processes count as dead.
    ///
    /// # Errors
    /// If no turn runs here and the relay fails.
    pub(crate) async fn stop(&self, conversation: &ConversationKey) -> Result<(), Refusal> {
        let here = self.running_here(conversation);
        // The newest first, so that none begins that waits for another.
        for (_, run) in here.iter().rev() {
            run.turn.handle().cancel(OnDrop::KeepPartial);
        }
        let elsewhere = self.stop_elsewhere(conversation).await;
        for (_, run) in &here {
            run.turn.handle().settled().await;
        }
        if here.is_empty() { elsewhere } else { Ok(()) }
    }

    async fn stop_elsewhere(&self, conversation: &ConversationKey) -> Result<(), Refusal> {
        let Some(link) = &self.relay else { return Ok(()) };
        let running = self.running_elsewhere(conversation).await?;
        for turn in running.iter().rev() {
            self.stop_copy(&(conversation.clone(), turn.clone()));
            link.ask(|relay| relay.stop(conversation, turn)).await.map_err(relay_failed)?;
        }
        for turn in &running {
            while is_running(link, conversation, turn).await? {
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Removes the turns of a deleted conversation, so that nobody reads or joins them.
    ///
    /// A relay that fails keeps them until they expire.
    pub(crate) async fn forget(&self, conversation: &ConversationKey) {
        self.lock().retain(|entry| entry.key.0 != *conversation || !entry.run.turn.has_ended());
        if let Some(link) = &self.relay
            && let Err(error) = link.ask(|relay| relay.forget(conversation)).await
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
    let page = link.ask(|relay| relay.read(conversation, turn, u64::MAX)).await.map_err(relay_failed)?;
    Ok(page.is_some_and(|page| page.state == RunState::Running))
}

/// Returns the refusal of a request that needs the relay.
#[allow(clippy::needless_pass_by_value, reason = "a function of `map_err`")]
fn relay_failed(error: Error) -> Refusal {
    log_failure(&error);
    Refusal::no_relay()
}
