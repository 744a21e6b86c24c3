//! `Time`: the paused clock of a schedule, which advances when its task is chosen.

use std::sync::atomic::AtomicBool;

use advisor_tests::prelude::*;
use shuttle::future::{JoinHandle, spawn, yield_now};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::sleep;

/// The clock of one schedule, which advances only when its task is chosen. Clones are the same clock.
#[derive(Clone)]
pub(crate) struct Time {
    runtime: Arc<Runtime>,
    is_over: Arc<AtomicBool>,
}

/// The step of the clock.
const TICK: Duration = Duration::from_millis(10);

impl Time {
    /// Returns a paused clock.
    pub(crate) fn paused() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        Self { runtime: Arc::new(runtime), is_over: Arc::default() }
    }

    /// Timers that are made until the guard is dropped go by this clock.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Spawns the task in which time goes by.
    pub(crate) fn pass(&self) -> JoinHandle<()> {
        let time = self.clone();
        spawn(async move {
            while !time.is_over.load(Ordering::Relaxed) {
                time.tick();
                yield_now().await;
            }
        })
    }

    /// Advances the clock a little, and wakes the tasks that waited for it.
    pub(crate) fn tick(&self) {
        self.runtime.block_on(sleep(TICK));
    }

    /// Stops the clock.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
