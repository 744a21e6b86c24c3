use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

use crate::{Error, drop_caught};

/// Where work that goes beside a turn waits until the turn's stream takes it.
#[derive(Default)]
pub(crate) struct SideTasks {
    /// Looked at for every chunk, so that no lock is taken while there is nothing new.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    added: Vec<BoxFuture<'static, Error>>,
    /// The turn is over.
    left: bool,
}

/// Work that goes beside a turn: it is polled with the turn's stream, as often as it asks to be.
#[derive(Default)]
pub(crate) struct AttachedTasks(Option<FuturesUnordered<BoxFuture<'static, Error>>>);

impl SideTasks {
    pub(crate) fn add(&self, work: BoxFuture<'static, Error>) {
        let mut waiting = self.lock();
        if waiting.left {
            // What it holds may use the turn when it is dropped.
            drop(waiting);
            return drop(work);
        }
        waiting.added.push(work);
        self.any.store(true, Ordering::Release);
    }

    /// Whether some are to be polled before the turn waits.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn take(&self) -> Vec<BoxFuture<'static, Error>> {
        let mut waiting = self.lock();
        self.any.store(false, Ordering::Release);
        mem::take(&mut waiting.added)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttachedTasks {
    /// Whether there was any.
    pub(crate) fn any(&self) -> bool {
        self.0.is_some()
    }

    /// Takes what has been added and lets all of it work. The error of one that has ended.
    #[inline]
    pub(crate) fn poll(&mut self, side_tasks: &SideTasks, cx: &mut Context<'_>) -> Option<Error> {
        if side_tasks.any() {
            self.0.get_or_insert_default().extend(side_tasks.take());
        }
        match self.0.as_mut()?.poll_next_unpin(cx) {
            Poll::Ready(error) => error,
            Poll::Pending => None,
        }
    }

    /// The turn is over, and so is the work.
    pub(crate) fn leave(&mut self, side_tasks: &SideTasks) {
        side_tasks.lock().left = true;
        let begun = self.0.take().into_iter().flatten();
        // One by one: what panics in its drop keeps no other.
        side_tasks.take().into_iter().chain(begun).for_each(drop_caught);
    }
}

impl fmt::Debug for SideTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SideTasks").field("any", &self.any).finish_non_exhaustive()
    }
}
