//! `drop_caught`: drops foreign values and contains panics of their destructors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
