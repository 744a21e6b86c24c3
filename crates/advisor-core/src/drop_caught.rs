use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a value of somebody else's. A panic of its `Drop` ends here; the panic hook has reported it.
///
/// Whoever stops a turn drops what others wrote: futures, states, closures. The turn must end whatever they do then.
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

/// Drops what a panic holds. If that panics as well, what the second panic holds is leaked: it could go on for ever.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(panic);
    }
}
