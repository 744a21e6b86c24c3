//! `SideTasks` and `AttachedTasks`: side work of a turn, such as lease renewal, polled with its stream.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

use crate::{Error, drop_caught};

/// Queue of side tasks of a turn until the turn's stream takes them.
#[derive(Default)]
pub(crate) struct SideTasks {
    /// Whether new tasks are queued. Read for every chunk, so that the lock is taken only for new tasks.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    added: Vec<BoxFuture<'static, Error>>,
    /// Wakes the turn's stream, which may wait while another task attaches work.
    stream: Option<Waker>,
    /// Whether the turn has ended.
    left: bool,
}

/// Side tasks of a turn, polled by the turn's stream whenever one is woken.
#[derive(Default)]
pub(crate) struct AttachedTasks(Option<FuturesUnordered<BoxFuture<'static, Error>>>);

impl SideTasks {
    pub(crate) fn add(&self, work: BoxFuture<'static, Error>) {
        let mut waiting = self.lock();
        if waiting.left {
            // Release the lock first: the work's drop may use the turn.
            drop(waiting);
            return drop(work);
        }
        waiting.added.push(work);
        self.any.store(true, Ordering::Release);
        let stream = waiting.stream.clone();
        // Release the lock first: waking may poll the stream.
        drop(waiting);
        stream.iter().for_each(Waker::wake_by_ref);
    }

    /// Sets the waker for the stream that polls the tasks.
    pub(crate) fn wake(&self, stream: Waker) {
        self.lock().stream = Some(stream);
    }

    /// Checks whether tasks are queued that must be polled before the turn waits.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Accepts no more work, and returns the waker of the stream.
    fn end(&self) -> Option<Waker> {
        let mut waiting = self.lock();
        waiting.left = true;
        waiting.stream.take()
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
    /// Takes queued tasks and polls all tasks. Returns the error of one that has ended.
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

    /// Ends the side tasks with the turn: drops all of them and accepts no more.
    pub(crate) fn leave(&mut self, side_tasks: &SideTasks) {
        // Bound to a name, so that the waker is dropped after the lock.
        let _stream = side_tasks.end();
        let begun = self.0.take().into_iter().flatten();
        // One by one, so that a panic in one drop does not prevent the others.
        side_tasks.take().into_iter().chain(begun).for_each(drop_caught);
    }
}
