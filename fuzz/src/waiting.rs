//! `wait_for`: runs a future to its end, on a clock that jumps to the next deadline.

use std::cell::RefCell;
use std::future::Future;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    // One for all inputs. Its clock stands still, and jumps to the next deadline when nothing else is left to do.
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime of one thread"),
    );
}

/// Runs a future to its end and returns its output.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}
