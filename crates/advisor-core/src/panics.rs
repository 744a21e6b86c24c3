//! `drop_caught` and `catch_panics`: drop foreign values and run foreign futures, and contain their panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Drops a foreign value and catches a panic of its `Drop`, which the panic hook has already reported.
///
/// Ending a turn drops values of other code: futures, states, closures. The turn must end even if one of them
/// panics.
///
/// # Example
/// ```
/// struct Loud;
/// impl Drop for Loud {
///     fn drop(&mut self) {
///         panic!("not like this");
///     }
/// }
/// advisor_core::drop_caught(Loud);
/// ```
pub fn drop_caught<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        discard(panic);
    }
}

/// Drops the payload of a panic. If that panics as well, the second payload is leaked, since this could repeat
/// forever.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(panic);
    }
}

/// Runs a future of other code: a panic in `poll` becomes the output, as its message, and a panic in `drop` is discarded.
///
/// Otherwise two futures that panic while they are dropped together would abort the process.
///
/// # Example
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let outcome: Result<(), String> = advisor_core::catch_panics(async { panic!("not like this") }).await;
/// assert_eq!(outcome, Err("not like this".to_owned()));
/// # }
/// ```
pub fn catch_panics<F: Future>(future: F) -> impl Future<Output = Result<F::Output, String>> {
    CatchPanics(Some(Box::pin(future)))
}

struct CatchPanics<F>(Option<Pin<Box<F>>>);

impl<F> CatchPanics<F> {
    fn release(&mut self) {
        drop_caught(self.0.take());
    }
}

impl<F: Future> Future for CatchPanics<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let outcome = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => {
                let text = String::from(text_of(&*panic));
                drop_caught(panic);
                Err(text)
            }
        };
        self.release();
        Poll::Ready(outcome)
    }
}

impl<F> Drop for CatchPanics<F> {
    fn drop(&mut self) {
        self.release();
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}
