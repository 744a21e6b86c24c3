use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use advisor_core::{Error, Result};
use futures::future::pending;
use tokio::time::{sleep, timeout};

use crate::OnBusy;
use crate::conversation::guard::ConversationGuard;
use crate::conversation::lease_state::LeaseState;
use crate::conversation::leases::HeldLease;
use crate::conversation::lock::{Busy, LockGuard, Owner};
use crate::turn::{TurnMemoryState, busy};
use conversation_store::{FencingToken, Leases, StoreError};

/// Claims a turn's conversation, in this process and across processes, and releases it.
impl TurnMemoryState {
    /// Claims the conversation under the policy `on_busy`; without one, fails at once if another turn runs in it.
    pub(crate) async fn hold(&self, on_busy: Option<OnBusy>) -> Result<ConversationGuard> {
        let claim = ConversationGuard::new(&self.registry, &self.hold, self.lock(on_busy).await?);
        if let Some(leases) = self.store.leases() {
            self.acquire(leases, on_busy).await?;
            *self.hold.renewed.lock().await = true;
        }
        Ok(claim)
    }

    async fn lock(&self, on_busy: Option<OnBusy>) -> Result<LockGuard> {
        let (locks, key) = (&self.registry.locks, &self.key);
        let owner: Arc<dyn Owner> = Arc::<LeaseState>::clone(&self.hold);
        match on_busy {
            None => locks.try_lock(key, &owner).map_err(|_| busy()),
            Some(OnBusy::Reject) => match locks.try_lock(key, &owner) {
                Err(Busy::SameTurn) => Ok(locks.lock(key, &owner).await),
                locked => locked.map_err(|_| busy()),
            },
            Some(OnBusy::Queue) => Ok(locks.lock(key, &owner).await),
            Some(OnBusy::InterruptPrevious) => Ok(locks.interrupt(key, &owner).await),
        }
    }

    /// Requests the lease from the store until the turn has it, or may not wait.
    async fn acquire(&self, leases: &dyn Leases, on_busy: Option<OnBusy>) -> Result<()> {
        // The turn may take over a lease that an earlier turn of this process still holds. It may also take over
        // one whose request was dropped before the store's answer arrived.
        let known = &self.registry.leases;
        let HeldLease { token: mut takeover_from, unanswered_requests: mut unanswered } = known.of(&self.key);
        let (mut pause, mut may_make_room) = (SHORTEST_PAUSE, true);
        loop {
            known.note_request(&self.key, &self.turn);
            let answer = leases.acquire(&self.key, &self.turn, self.lease_ttl, takeover_from).await;
            if !matches!(answer, Err(StoreError::OutcomeUnknown { .. })) {
                known.note_answer(&self.key, &self.turn);
            }
            match answer {
                Err(StoreError::OutcomeUnknown { .. }) if !unanswered.contains(&self.turn) => {
                    unanswered.push(self.turn.clone());
                }
                Err(StoreError::Locked { turn, token, .. }) if unanswered.contains(&turn) => {
                    unanswered.retain(|known| *known != turn);
                    takeover_from = Some(token);
                }
                Err(StoreError::Locked { turn, remaining, .. })
                    if on_busy == Some(OnBusy::Queue) || (on_busy.is_some() && turn == self.turn) =>
                {
                    sleep(pause.min(remaining)).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
                Err(StoreError::Locked { token, .. }) if on_busy == Some(OnBusy::InterruptPrevious) => {
                    takeover_from = Some(token);
                }
                Ok(token) => {
                    self.hold.set_token(token);
                    known.forget_requests(&self.key);
                    self.registry.note_lease(&self.key, token);
                    return Ok(());
                }
                Err(StoreError::Locked { .. }) => {
                    known.forget_requests(&self.key);
                    return Err(busy());
                }
                Err(StoreError::Full { .. }) if std::mem::take(&mut may_make_room) => self.make_room().await,
                Err(error @ StoreError::Full { .. }) => return Err(error.into()),
                Err(error) => return Err(error.into_load_error()),
            }
        }
    }

    /// Claims the conversation again for a turn that continues after its end.
    pub(crate) async fn hold_again(&self, claim: &ConversationGuard) -> Result<()> {
        if !claim.lock.relock() {
            return Err(busy());
        }
        if let (Some(leases), Some(token)) = (self.store.leases(), self.hold.token()) {
            let mut renewed = self.hold.renewed.lock().await;
            self.renew(leases, token).await.map_err(Error::from)?;
            *renewed = true;
            self.registry.note_lease(&self.key, token);
        }
        Ok(())
    }

    async fn renew(&self, leases: &dyn Leases, token: FencingToken) -> Result<(), StoreError> {
        let unanswered = &self.hold.unanswered_renewals;
        unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = leases.renew(&self.key, token, self.lease_ttl).await;
        if !matches!(answer, Err(StoreError::OutcomeUnknown { .. })) {
            unanswered.fetch_sub(1, Ordering::Relaxed);
        }
        answer
    }

    /// Releases the lease and the claim, so that other turns may begin.
    pub(crate) async fn give_back(&self, claim: &ConversationGuard) {
        if !claim.lock.is_lost() {
            self.release_lease().await;
        }
        claim.release();
    }

    /// Releases the turn's lease in the store.
    pub(crate) async fn release_lease(&self) {
        let (Some(leases), Some(token)) = (self.store.leases(), self.hold.token()) else { return };
        let mut renewed = self.hold.renewed.lock().await;
        *renewed = false;
        match leases.release(&self.key, token).await {
            // A late renewal would take the lease again, so the registry keeps the token.
            Ok(()) if self.hold.unanswered_renewals.load(Ordering::Relaxed) > 0 => {}
            Ok(()) => self.registry.leases.note_released(&self.key, token),
            // The lease expires, or the next turn of this process takes it over.
            Err(error) => {
                tracing::debug!(conversation = %self.key, %error, "a lease could not be released");
            }
        }
    }

    /// Checks whether the turn's lease is still to be released.
    pub(crate) fn holds_lease(&self) -> bool {
        let token = self.hold.token();
        token.is_some() && self.registry.leases.token(&self.key) == token
    }

    /// Runs beside the turn and renews its lease. Returns an error that ends the turn when it is fenced.
    pub(crate) async fn keep_lease(self: Arc<Self>) -> Error {
        let Some(leases) = self.store.leases() else { return pending().await };
        let pause = self.lease_ttl / 3;
        loop {
            sleep(pause).await;
            let renewed = self.hold.renewed.lock().await;
            let Some(token) = self.hold.token().filter(|_| *renewed) else { continue };
            // A store that does not answer now may answer before the lease expires.
            let answer = timeout(pause / 2, self.renew(leases, token)).await;
            if let Ok(Err(lost @ StoreError::Fenced)) = answer {
                return lost.into();
            }
        }
    }
}

/// The first and the longest pause before another request for a held lease.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
