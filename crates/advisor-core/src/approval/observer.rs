//! `DecidedCallObserver`: sees how decided calls end.

use std::fmt;
use std::sync::Arc;

use message_aggregator::ToolResult;

/// An observer of decided calls, such as for counters: an [extension](crate::Extensions) of the turn that continues after
/// them. The stream of that turn does not show them.
///
/// # Ordering
/// It runs once for each decided call, in call order, after all of them have ended, and before their results are stored.
/// A turn that is submitted again, after its results are stored, runs neither the calls nor the observer again.
///
/// # Cancellation
/// If the turn stops while approved calls run, it runs for none of them.
///
/// # Errors
/// It has none. If the execution itself fails, it does not run.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use advisor_core::{ChatClient, Decision, DecidedCallObserver, Result};
///
/// /// Continues a conversation, and returns the number of calls that have run.
/// async fn resume(client: &ChatClient, conversation: &str, decisions: Vec<Decision>) -> Result<usize> {
///     let runs = Arc::new(AtomicUsize::new(0));
///     let counted = Arc::clone(&runs);
///     let observer = DecidedCallObserver::new(move |result| {
///         if !result.is_denied {
///             counted.fetch_add(1, Ordering::Relaxed);
///         }
///     });
///     client.resume(conversation, decisions).extension(observer).call().await?;
///     Ok(runs.load(Ordering::Relaxed))
/// }
/// ```
#[derive(Clone)]
pub struct DecidedCallObserver(Arc<Observe>);

type Observe = dyn Fn(&ToolResult) + Send + Sync;

impl DecidedCallObserver {
    /// Creates an observer of the results. It must not block.
    pub fn new(observe: impl Fn(&ToolResult) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn observe(&self, result: &ToolResult) {
        (self.0)(result);
    }
}

impl fmt::Debug for DecidedCallObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecidedCallObserver").finish_non_exhaustive()
    }
}
