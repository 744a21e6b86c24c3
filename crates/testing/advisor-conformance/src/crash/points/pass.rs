//! `Pass`: the future of one await point. It returns the fault that the leaf must have.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::crash::{AwaitPoint, AwaitPoints, Fault};

/// The message of errors and panics that a test caused.
pub(in crate::crash) const WANTED: &str = "the test wants it so";

/// A point that is being passed.
pub(in crate::crash) struct Pass {
    points: AwaitPoints,
    await_point: AwaitPoint,
    progress: Progress,
}

enum Progress {
    Coming,
    Waiting,
    Stopped,
}

impl Pass {
    pub(in crate::crash) fn new(points: &AwaitPoints, await_point: AwaitPoint) -> Self {
        Self { points: points.clone(), await_point, progress: Progress::Coming }
    }
}

impl Future for Pass {
    type Output = Option<Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Fault>> {
        let this = &mut *self;
        if matches!(this.progress, Progress::Coming) {
            this.points.call_watch(this.await_point);
        }
        let mut shared = this.points.lock();
        match this.progress {
            Progress::Coming => {}
            Progress::Waiting => return Poll::Ready(None),
            Progress::Stopped if shared.released => return Poll::Ready(None),
            Progress::Stopped => {
                shared.stopped.push(cx.waker().clone());
                return Poll::Pending;
            }
        }
        match shared.arrive(this.await_point) {
            Some(stop) if stop.is_stop() => {
                shared.stopped.push(cx.waker().clone());
                this.progress = Progress::Stopped;
                Poll::Pending
            }
            Some(Fault::Panic) => {
                drop(shared);
                // Panics without running the panic hook.
                resume_unwind(Box::new(WANTED))
            }
            None if this.await_point.waits() => {
                this.progress = Progress::Waiting;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            fault => Poll::Ready(fault),
        }
    }
}
