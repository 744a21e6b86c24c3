//! `LeaseState`: the lease of a running turn, and its interruption.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use advisor_core::{Error, ErrorKind, Turn, TurnId};
use conversation_store::FencingToken;
use tokio::sync::Mutex;

use crate::conversation::lock::Owner;

/// The lease of a running turn, and its interruption.
pub(crate) struct LeaseState {
    id: TurnId,
    /// The turn owns this state, through its extensions.
    turn: Weak<Turn>,
    /// Whether another turn has interrupted this one.
    interrupted: AtomicBool,
    /// The fencing token of its lease, if it has one.
    token: std::sync::Mutex<Option<FencingToken>>,
    /// Whether the lease is to be renewed. The lock is held during a renewal, so that a released lease is not
    /// renewed afterwards.
    pub(crate) renewed: Mutex<bool>,
    /// The number of renewals that the store did not answer; they may still take effect.
    pub(crate) unanswered_renewals: AtomicU32,
}

impl LeaseState {
    pub(crate) fn new(turn: &Arc<Turn>) -> Self {
        Self {
            id: turn.id().clone(),
            turn: Arc::downgrade(turn),
            interrupted: AtomicBool::new(false),
            token: std::sync::Mutex::default(),
            renewed: Mutex::default(),
            unanswered_renewals: AtomicU32::new(0),
        }
    }

    pub(crate) fn token(&self) -> Option<FencingToken> {
        *self.lock_token()
    }

    pub(crate) fn set_token(&self, token: FencingToken) {
        *self.lock_token() = Some(token);
    }

    fn lock_token(&self) -> MutexGuard<'_, Option<FencingToken>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner for LeaseState {
    fn turn(&self) -> &TurnId {
        &self.id
    }

    fn interrupt(&self) {
        // Only once: many turns may interrupt a turn that is not polled.
        if !self.interrupted.swap(true, Ordering::Relaxed)
            && let Some(turn) = self.turn.upgrade()
        {
            turn.attach(async {
                Error::new(
                    ErrorKind::Cancelled,
                    "a newer turn of the conversation has taken this one's place",
                )
            });
        }
    }
}

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseState").field("token", &self.token()).finish_non_exhaustive()
    }
}
