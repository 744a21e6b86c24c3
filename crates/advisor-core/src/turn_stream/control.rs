//! `OnDrop`, `Spawner` and `TurnHandle`; `TurnControl`, the shared cancellation state.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake};

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::sync::watch;

use crate::drop_caught;

/// Policy for a turn that is dropped or cancelled before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDrop {
    /// Everything stops. Memory keeps the delivered text with a marker that the model sees. It writes them at once
    /// if the caller gave a [`Spawner`], otherwise with the next turn of the conversation.
    #[default]
    KeepPartial,
    /// The turn continues without its reader. Needs a [`Spawner`]; without one, the turn fails as
    /// [`Configuration`](crate::ErrorKind::Configuration) before it begins.
    FinishTurn,
    /// Everything stops and memory hides the turn. Tools that ran are not undone.
    Rollback,
}

/// Executor for work that outlives a turn. This project spawns nothing without one.
#[derive(Clone)]
pub struct Spawner(Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>);

impl Spawner {
    /// Creates a spawner that passes each future to `spawn`.
    pub fn new(spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(spawn))
    }

    /// Creates a spawner on a tokio runtime.
    #[must_use]
    pub fn tokio(runtime: tokio::runtime::Handle) -> Self {
        Self::new(move |work| drop(runtime.spawn(work)))
    }

    /// Runs `work`, detached. If the spawner panics, the work is dropped and the panic is caught.
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

/// Handle that cancels a turn and waits for it, from another task than its reader.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    control: Arc<TurnControl>,
}

impl TurnHandle {
    pub(super) fn new(control: Arc<TurnControl>) -> Self {
        Self { control }
    }

    /// Cancels the turn. The next poll of its stream records the end according to `mode`. Then the stream ends
    /// with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled). A turn that has ended is unchanged.
    pub fn cancel(&self, mode: OnDrop) {
        self.control.cancel(mode);
    }

    /// Checks whether the turn was ever cancelled, also one that has ended nevertheless.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.control.is_requested()
    }

    /// Waits until the turn has settled: it has ended, or was dropped and all of its spawned work has run.
    pub fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut settled = self.control.settled.subscribe();
        async move {
            // The sender lives in the control, which settles before it is dropped.
            let _ = settled.wait_for(|settled| *settled).await;
        }
    }
}

pub(super) struct TurnControl {
    requested: AtomicBool,
    mode: Mutex<Option<OnDrop>>,
    reader: AtomicWaker,
    settled: watch::Sender<bool>,
}

impl TurnControl {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            requested: AtomicBool::new(false),
            mode: Mutex::new(None),
            reader: AtomicWaker::new(),
            settled: watch::Sender::new(false),
        })
    }

    fn cancel(&self, mode: OnDrop) {
        *self.mode() = Some(mode);
        self.requested.store(true, Ordering::Release);
        self.reader.wake();
    }

    /// Checks whether the turn was ever cancelled. Called for every chunk, so it takes no lock.
    #[inline]
    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Returns the mode of a pending cancellation, once.
    pub(super) fn take_cancelled(&self) -> Option<OnDrop> {
        if self.is_requested() { self.mode().take() } else { None }
    }

    /// Checks whether a cancellation is pending, and registers `cx` to be woken by one.
    pub(super) fn poll_cancelled(&self, cx: &Context<'_>) -> bool {
        self.reader.register(cx.waker());
        self.is_requested() && self.mode().is_some()
    }

    fn mode(&self) -> MutexGuard<'_, Option<OnDrop>> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// Marks the turn as not settled: its end was not delivered and can still be undone.
    pub(super) fn unsettle(&self) {
        self.settled.send_replace(false);
    }
}

/// Wakes the turn's stream.
impl Wake for TurnControl {
    fn wake(self: Arc<Self>) {
        self.reader.wake();
    }
}

impl fmt::Debug for TurnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnControl").field("settled", &*self.settled.borrow()).finish_non_exhaustive()
    }
}
