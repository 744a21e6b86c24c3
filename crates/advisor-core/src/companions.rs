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
    working: Mutex<Working>,
}

#[derive(Default)]
struct Working {
    /// Absent while it is polled.
    polled: Option<FuturesUnordered<BoxFuture<'static, Error>>>,
    added: Vec<BoxFuture<'static, Error>>,
    /// The turn is over.
    left: bool,
}

impl Companions {
    pub(crate) fn add(&self, work: BoxFuture<'static, Error>) {
        let mut working = self.lock();
        if working.left {
            // What it holds may use the turn when it is dropped.
            drop(working);
            return drop(work);
        }
        working.added.push(work);
        drop(working);
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
        let (mut working, added) = {
            let mut working = self.lock();
            (working.polled.take().unwrap_or_default(), mem::take(&mut working.added))
        };
        working.extend(added);
        let polled = working.poll_next_unpin(cx);
        self.lock().polled = Some(working);
        match polled {
            Poll::Ready(Some(error)) => Some(error),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// The turn is over, and so is their work.
    pub(crate) fn leave(&self) {
        self.any.store(false, Ordering::Release);
        self.new.store(false, Ordering::Release);
        let working = mem::replace(&mut *self.lock(), Working { left: true, ..Working::default() });
        drop(working);
    }

    fn lock(&self) -> MutexGuard<'_, Working> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Companions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companions").field("any", &self.any).finish_non_exhaustive()
    }
}
