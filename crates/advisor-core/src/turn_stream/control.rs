use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::sync::watch;

use crate::{TurnId, drop_caught};

/// What becomes of a turn that is dropped or cancelled before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDrop {
    /// Everything stops. Memory keeps the text that was delivered, with a marker that the model sees:
    /// at once where the caller gave a [`Spawner`], otherwise with the next turn of the conversation.
    #[default]
    KeepPartial,
    /// The turn goes on without its reader. Needs a [`Spawner`]; without one it is sealed.
    FinishTurn,
    /// Everything stops and memory hides the turn. Tools that ran are not undone.
    Rollback,
}

/// Where work that outlives a turn may run. This project spawns nothing unless it was given one.
#[derive(Clone)]
pub struct Spawner(Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>);

impl Spawner {
    /// A spawner that hands each piece of work to `spawn`.
    pub fn new(spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(spawn))
    }

    /// A spawner on a tokio runtime.
    #[must_use]
    pub fn tokio(runtime: tokio::runtime::Handle) -> Self {
        Self::new(move |work| drop(runtime.spawn(work)))
    }

    /// Runs `work`, detached. A spawner that panics has refused it: the work is dropped, and the panic ends here.
    pub fn spawn(&self, work: BoxFuture<'static, ()>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.0)(work))) {
            drop_caught(panic);
        }
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}

/// Cancels a turn and waits for it, from another task than the one that reads it.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    control: Arc<TurnControl>,
    turn: TurnId,
}

impl TurnHandle {
    pub(crate) fn new(control: Arc<TurnControl>, turn: TurnId) -> Self {
        Self { control, turn }
    }

    /// The turn.
    #[must_use]
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// Cancels the turn. Its stream ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled)
    /// as soon as it is polled, after what `mode` says has been recorded. A turn that has ended stays as it is.
    pub fn cancel(&self, mode: OnDrop) {
        self.control.cancel(mode);
    }

    /// Waits until nothing more will be done by the turn: it has ended, or was dropped and all that was
    /// left for a spawner has run.
    pub fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut settled = self.control.settled.subscribe();
        async move {
            // The sender lives in the control, so it can only be gone after it has settled.
            let _ = settled.wait_for(|settled| *settled).await;
        }
    }
}

pub(crate) struct TurnControl {
    requested: AtomicBool,
    mode: Mutex<Option<OnDrop>>,
    reader: AtomicWaker,
    settled: watch::Sender<bool>,
}

impl TurnControl {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            requested: AtomicBool::new(false),
            mode: Mutex::new(None),
            reader: AtomicWaker::new(),
            settled: watch::Sender::new(false),
        })
    }

    fn cancel(&self, mode: OnDrop) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
        self.requested.store(true, Ordering::Release);
        self.reader.wake();
    }

    /// Whether the turn was cancelled at some time. Looked at for every chunk, so it takes no lock.
    #[inline]
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// How the turn is to be cancelled, if it is and nobody has been told yet.
    pub(crate) fn take_cancelled(&self) -> Option<OnDrop> {
        if !self.is_requested() {
            return None;
        }
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the turn is to be cancelled and nobody has been told yet; otherwise `cx` is woken when it is.
    pub(crate) fn poll_cancelled(&self, cx: &Context<'_>) -> bool {
        self.reader.register(cx.waker());
        let mode = || self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        self.requested.load(Ordering::Acquire) && mode().is_some()
    }

    pub(crate) fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// The end of the turn was not delivered, and may still be undone.
    pub(crate) fn unsettle(&self) {
        self.settled.send_replace(false);
    }
}

impl fmt::Debug for TurnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnControl").field("settled", &*self.settled.borrow()).finish_non_exhaustive()
    }
}
