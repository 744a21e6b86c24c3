//! Takes the lock of a turn; acquires, renews and returns its lease; ends the turn after a loss.

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

/// Acquires a turn's conversation, in this process and across processes, and releases it.
impl TurnMemoryState {
    /// Acquires the conversation under the policy `on_busy`; without one, fails at once if another turn runs in it.
    pub(crate) async fn acquire(&self, on_busy: Option<OnBusy>) -> Result<ConversationGuard> {
        let guard = ConversationGuard::new(&self.registry, &self.lease, self.lock(on_busy).await?);
        if let Some(leases) = self.store.leases() {
            self.acquire_lease(leases, on_busy).await?;
            *self.lease.renewed.lock().await = true;
        }
        Ok(guard)
    }

    async fn lock(&self, on_busy: Option<OnBusy>) -> Result<LockGuard> {
        let (locks, key) = (&self.registry.locks, &self.key);
        let owner: Arc<dyn Owner> = Arc::<LeaseState>::clone(&self.lease);
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
    async fn acquire_lease(&self, leases: &dyn Leases, on_busy: Option<OnBusy>) -> Result<()> {
        // The turn may take over a lease that an earlier turn of this process still holds. It may also take over
        // one whose request was dropped before the store's answer arrived.
        let known = &self.registry.leases;
        let HeldLease { token: mut takeover_from, unanswered_requests: mut unanswered } =
            known.lease(&self.key);
        let interrupts = on_busy == Some(OnBusy::InterruptPrevious);
        let waits = interrupts || on_busy == Some(OnBusy::Queue);
        let (mut pause, mut may_make_room) = (SHORTEST_PAUSE, true);
        loop {
            match self.request_lease(leases, takeover_from, waits).await {
                // The store may have granted the lease to this request; the next answer shows it.
                Err(StoreError::OutcomeUnknown { .. }) if !unanswered.contains(&self.turn) => {
                    unanswered.push(self.turn.clone());
                }
                // Takes over one of two leases. No turn runs under that of an unanswered request of this process.
                // The other is that of the interrupted turn, whose appends are refused from then on.
                // A takeover that is refused must wait: another turn has waited for long.
                Err(StoreError::Locked { turn, token, .. })
                    if takeover_from != Some(token)
                        && (unanswered.contains(&turn) || (interrupts && turn != self.turn)) =>
                {
                    unanswered.retain(|known| *known != turn);
                    takeover_from = Some(token);
                }
                Err(StoreError::Locked { turn, remaining, .. })
                    if waits || (on_busy.is_some() && turn == self.turn) =>
                {
                    sleep(pause.min(remaining)).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
                Ok(_) => return Ok(()),
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

    /// Sends one request for the lease. Notes it until it is answered, and the lease that the store grants.
    async fn request_lease(
        &self,
        leases: &dyn Leases,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken, StoreError> {
        let known = &self.registry.leases;
        known.note_request(&self.key, &self.turn);
        let answer = if waits {
            leases.acquire_in_turn(&self.key, &self.turn, self.lease_ttl, takeover_from).await
        } else {
            leases.acquire(&self.key, &self.turn, self.lease_ttl, takeover_from).await
        };
        if !matches!(answer, Err(StoreError::OutcomeUnknown { .. })) {
            known.note_answer(&self.key, &self.turn);
        }
        if let Ok(token) = answer {
            self.lease.set_token(token);
            known.forget_requests(&self.key);
            self.registry.note_lease(&self.key, token);
        }
        answer
    }

    /// Acquires the conversation again for a turn that continues after its end.
    pub(crate) async fn reacquire(&self, guard: &ConversationGuard) -> Result<()> {
        if !guard.lock.relock() {
            return Err(busy());
        }
        if let (Some(leases), Some(token)) = (self.store.leases(), self.lease.token()) {
            let mut renewed = self.lease.renewed.lock().await;
            self.renew(leases, token).await.map_err(Error::from)?;
            *renewed = true;
            self.registry.note_lease(&self.key, token);
        }
        Ok(())
    }

    async fn renew(&self, leases: &dyn Leases, token: FencingToken) -> Result<(), StoreError> {
        let unanswered = &self.lease.unanswered_renewals;
        unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = leases.renew(&self.key, token, self.lease_ttl).await;
        if !matches!(answer, Err(StoreError::OutcomeUnknown { .. })) {
            unanswered.fetch_sub(1, Ordering::Relaxed);
        }
        answer
    }

    /// Releases the lease and the lock, so that other turns may begin.
    pub(crate) async fn release(&self, guard: &ConversationGuard) {
        if !guard.lock.is_lost() {
            self.release_lease().await;
        }
        guard.release();
    }

    /// Releases the turn's lease in the store.
    pub(crate) async fn release_lease(&self) {
        let (Some(leases), Some(token)) = (self.store.leases(), self.lease.token()) else { return };
        let mut renewed = self.lease.renewed.lock().await;
        *renewed = false;
        match leases.release(&self.key, token).await {
            // A late renewal would take the lease again, so the registry keeps the token.
            Ok(()) if self.lease.unanswered_renewals.load(Ordering::Relaxed) > 0 => {}
            Ok(()) => self.registry.leases.note_released(&self.key, token),
            // The lease expires, or the next turn of this process takes it over.
            Err(error) => {
                tracing::debug!(conversation = %self.key, %error, "a lease could not be released");
            }
        }
    }

    /// Checks whether the turn's lease is still to be released.
    pub(crate) fn holds_lease(&self) -> bool {
        let token = self.lease.token();
        token.is_some() && self.registry.leases.token(&self.key) == token
    }

    /// Runs beside the turn and renews its lease. Returns an error that ends the turn when it is fenced.
    pub(crate) async fn keep_lease(self: Arc<Self>) -> Error {
        let Some(leases) = self.store.leases() else { return pending().await };
        let pause = self.lease_ttl / 3;
        loop {
            sleep(pause).await;
            let renewed = self.lease.renewed.lock().await;
            let Some(token) = self.lease.token().filter(|_| *renewed) else { continue };
            // A store that does not answer now may answer before the lease expires.
            let answer = timeout(pause / 2, self.renew(leases, token)).await;
            if let Ok(Err(lost @ StoreError::Fenced)) = answer {
                return lost.into();
            }
        }
    }
}

/// The first and the longest pause before another request for a held lease. The longest is far below the time for
/// which a request keeps a place in the queue.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
