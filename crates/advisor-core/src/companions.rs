use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

use crate::Error;

/// Work that goes beside a turn: it is polled with the turn's stream, as often as it asks to be.
#[derive(Default)]
pub(crate) struct Companions {
    any: AtomicBool,
    /// Some have not been polled yet.
    new: AtomicBool,
    working: Mutex<FuturesUnordered<BoxFuture<'static, Error>>>,
}

impl Companions {
    pub(crate) fn add(&self, work: BoxFuture<'static, Error>) {
        self.lock().push(work);
        self.new.store(true, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// Whether some are to be polled before the turn waits.
    pub(crate) fn are_new(&self) -> bool {
        self.new.load(Ordering::Acquire)
    }

    /// Lets them work. The error of one that has ended.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Option<Error> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.new.store(false, Ordering::Release);
        // They may use the turn, so the lock is free meanwhile.
        let mut working = mem::take(&mut *self.lock());
        let polled = working.poll_next_unpin(cx);
        let added = mem::replace(&mut *self.lock(), working);
        self.lock().extend(added);
        match polled {
            Poll::Ready(Some(error)) => Some(error),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// The turn is over, and so is their work.
    pub(crate) fn leave(&self) {
        self.any.store(false, Ordering::Release);
        self.new.store(false, Ordering::Release);
        let working = mem::take(&mut *self.lock());
        drop(working);
    }

    fn lock(&self) -> MutexGuard<'_, FuturesUnordered<BoxFuture<'static, Error>>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Companions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companions").field("working", &self.lock().len()).finish()
    }
}
