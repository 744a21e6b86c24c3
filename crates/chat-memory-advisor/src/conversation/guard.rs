//! `ConversationGuard`: the lock of the running turn and its unconfirmed start.

use std::sync::Arc;

use crate::conversation::Registry;
use crate::conversation::lease_state::LeaseState;
use crate::conversation::lock::LockGuard;
use crate::conversation::unfinished_turn::UnfinishedTurn;

/// Guard held by the turn that is running in a conversation, within this process.
#[derive(Debug)]
pub(crate) struct ConversationGuard {
    registry: Arc<Registry>,
    lease: Arc<LeaseState>,
    pub(crate) lock: LockGuard,
    /// The turn as unfinished, while its start may be written but is not confirmed.
    pub(crate) unconfirmed: Option<UnfinishedTurn>,
}

impl ConversationGuard {
    pub(crate) fn new(registry: &Arc<Registry>, lease: &Arc<LeaseState>, lock: LockGuard) -> Self {
        Self { registry: Arc::clone(registry), lease: Arc::clone(lease), lock, unconfirmed: None }
    }

    /// Releases the lock and wakes waiting turns. The lease may be evicted from now on.
    pub(crate) fn release(&self) {
        let (locks, key) = (&self.registry.locks, self.lock.key());
        self.lock.unlock();
        self.registry.leases.evict(key, || locks.is_held(key));
    }
}

impl Drop for ConversationGuard {
    fn drop(&mut self) {
        // Before the release, so that the next turn finds it.
        if let Some(turn) = self.unconfirmed.take() {
            let turn = UnfinishedTurn { token: self.lease.token(), ..turn };
            self.registry.unfinished.register(self.lock.key(), turn);
        }
        self.release();
    }
}
