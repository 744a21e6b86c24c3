//! `Turn::on_rejected` and `reject_answer`: the work of caches if the last answer is rejected.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Turn;

/// The work of advisors for the case that the last answer of their turn is rejected.
#[derive(Default)]
pub(super) struct Rejections(Vec<BoxFuture<'static, ()>>);

impl Turn {
    /// Sets work that runs if an advisor further outside [rejects](Self::reject_answer) the last answer of this turn.
    ///
    /// A cache removes the answer then. Set it when the answer is complete. The next answer of the turn drops it. The turn
    /// holds the work, so the work must not hold the turn.
    pub fn on_rejected(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.lock().rejections.0.push(work.boxed());
    }

    /// Rejects the last answer of this turn: caches inside remove it, and do not repeat it.
    ///
    /// An advisor calls it before it asks again because the answer is unsuitable, and before it fails for that reason.
    ///
    /// # Ordering
    /// The work runs in the order in which it was set, and once. A later answer of the turn drops it. So a judge that asks
    /// the same chain in this turn comes too late: the last answer is its verdict.
    ///
    /// # Cancellation
    /// Dropping the future drops the rest of the work. A cache may then keep the answer.
    ///
    /// # Errors
    /// It has none.
    ///
    /// # Example
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use advisor_core::{Turn, TurnId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (turn, is_kept) = (Turn::new(TurnId::random()), Arc::new(AtomicBool::new(true)));
    /// let kept = Arc::clone(&is_kept);
    /// turn.on_rejected(async move { kept.store(false, Ordering::Relaxed) });
    /// turn.reject_answer().await;
    /// assert!(!is_kept.load(Ordering::Relaxed));
    /// # }
    /// ```
    pub async fn reject_answer(&self) {
        for work in self.take_rejections() {
            work.await;
        }
    }

    /// Takes the work out of the turn. It must not be dropped under the lock, since its drop may use the turn.
    pub(super) fn take_rejections(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.lock().rejections.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    use message_aggregator::Message;

    use super::*;
    use crate::TurnId;

    #[tokio::test]
    async fn only_the_last_answer_is_rejected() {
        let (turn, rejected) = (Turn::new(TurnId::random()), Arc::new(AtomicU32::new(0)));
        let note = |answer: u32| {
            let rejected = Arc::clone(&rejected);
            turn.note_answer(&Message::assistant("An answer."));
            turn.on_rejected(async move { rejected.store(answer, Ordering::Relaxed) });
        };
        note(1);
        note(2);
        turn.reject_answer().await;
        assert_eq!(rejected.swap(0, Ordering::Relaxed), 2);
        turn.reject_answer().await;
        assert_eq!(rejected.load(Ordering::Relaxed), 0, "an answer is rejected once");
    }

    #[tokio::test]
    async fn work_runs_in_the_order_in_which_it_was_set() {
        let (turn, order) = (Turn::new(TurnId::random()), Arc::new(Mutex::new(Vec::new())));
        for place in ["inner", "outer"] {
            let order = Arc::clone(&order);
            turn.on_rejected(async move {
                tokio::task::yield_now().await;
                order.lock().unwrap().push(place);
            });
        }
        turn.reject_answer().await;
        assert_eq!(*order.lock().unwrap(), ["inner", "outer"]);
    }
}
