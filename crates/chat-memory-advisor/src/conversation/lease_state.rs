use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{MutexGuard, PoisonError};

use advisor_core::TurnId;
use conversation_store::FencingToken;
use tokio::sync::{Mutex, Notify};

use crate::conversation::lock::Owner;

/// The lease of a running turn, and its interruption.
pub(crate) struct LeaseState {
    turn: TurnId,
    /// Notified when another turn is to take over.
    pub(crate) interrupted: Notify,
    /// The fencing token of its lease, if it has one.
    fence: std::sync::Mutex<Option<FencingToken>>,
    /// Whether the lease is to be renewed. The lock is held during a renewal, so that a released lease is not
    /// renewed afterwards.
    pub(crate) renewed: Mutex<bool>,
    /// The number of renewals that the store did not answer; they may still take effect.
    pub(crate) unheard_renewals: AtomicU32,
}

impl LeaseState {
    pub(crate) fn new(turn: TurnId) -> Self {
        Self {
            turn,
            interrupted: Notify::new(),
            fence: std::sync::Mutex::default(),
            renewed: Mutex::default(),
            unheard_renewals: AtomicU32::new(0),
        }
    }

    pub(crate) fn fence(&self) -> Option<FencingToken> {
        *self.lock_fence()
    }

    pub(crate) fn set_fence(&self, fence: FencingToken) {
        *self.lock_fence() = Some(fence);
    }

    fn lock_fence(&self) -> MutexGuard<'_, Option<FencingToken>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner for LeaseState {
    fn turn(&self) -> &TurnId {
        &self.turn
    }

    fn interrupt(&self) {
        self.interrupted.notify_one();
    }
}

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseState").field("fence", &self.fence()).finish_non_exhaustive()
    }
}
