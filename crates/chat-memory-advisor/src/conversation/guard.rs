use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use crate::conversation::interrupted_turn::InterruptedTurn;
use crate::conversation::waiters::{Waiting, Watch};
use crate::conversation::{Registry, Slot};
use conversation_store::FencingToken;

/// Guard held by the turn that is running in a conversation, within this process.
#[derive(Debug)]
pub(crate) struct ConversationGuard {
    registry: Arc<Registry>,
    key: ConversationKey,
    turn: TurnId,
    number: u64,
    hold: Arc<LeaseState>,
    /// The turn as unfinished, while its beginning may be written but is not confirmed.
    pub(crate) beginning: Option<InterruptedTurn>,
}

/// The running turn of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// The number of its claim. The turn id is not enough: a turn may be submitted twice.
    number: u64,
    pub(crate) turn: TurnId,
    hold: Arc<LeaseState>,
}

/// Lease and interruption state of a running turn.
#[derive(Default)]
pub(crate) struct LeaseState {
    /// Notified when another turn is to take over.
    pub(crate) interrupted: Notify,
    /// The fencing token of its lease, if it has one.
    fence: std::sync::Mutex<Option<FencingToken>>,
    /// Whether the lease is to be renewed. The lock is held during a renewal, so that a released lease is not
    /// renewed afterwards.
    pub(crate) renewed: Mutex<bool>,
    /// The number of renewals that the store did not answer; they may still take effect.
    pub(crate) unheard_renewals: AtomicU32,
}

/// How long a turn may take to end when another one is to take over. A turn whose stream is not polled does not
/// end.
const GRACE: Duration = Duration::from_secs(5);

impl Registry {
    /// Claims a conversation for a turn, unless a turn runs in it or waits for it.
    pub(crate) fn claim_now(
        self: &Arc<Self>,
        key: &ConversationKey,
        turn: &TurnId,
        hold: &Arc<LeaseState>,
    ) -> Option<ConversationGuard> {
        self.claim_if(key, turn, hold, |slot| slot.waiters.is_queue_empty()).ok()
    }

    /// Claims a conversation for a turn, unless another turn runs in it or waits for it. If the same turn runs or
    /// waits already, waits in the queue.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        key: &ConversationKey,
        turn: &TurnId,
        hold: &Arc<LeaseState>,
    ) -> Option<ConversationGuard> {
        let mut is_here = false;
        let claim = self.claim_if(key, turn, hold, |slot| {
            is_here = slot.runs(turn);
            slot.waiters.is_queue_empty()
        });
        if is_here { Some(self.claim_in_turn(key, turn, hold).await) } else { claim.ok() }
    }

    /// Claims a conversation for a turn, after the turns that came before.
    pub(crate) async fn claim_in_turn(
        self: &Arc<Self>,
        key: &ConversationKey,
        turn: &TurnId,
        hold: &Arc<LeaseState>,
    ) -> ConversationGuard {
        let waiting = Waiting::behind_all(self, key, turn);
        loop {
            match self.claim_if(key, turn, hold, |slot| waiting.is_first(slot)) {
                Ok(claim) => return claim,
                Err(_) => waiting.reached().await,
            }
        }
    }

    /// Ends the turn that runs in a conversation and claims it, ahead of waiting turns. If the running turn is the
    /// same, waits in the queue instead.
    pub(crate) async fn claim_in_place(
        self: &Arc<Self>,
        key: &ConversationKey,
        turn: &TurnId,
        hold: &Arc<LeaseState>,
    ) -> ConversationGuard {
        loop {
            let mut watch = Watch::new(self, key);
            match self.claim_if(key, turn, hold, |_| true) {
                Ok(claim) => return claim,
                Err(Some(running)) if running.turn == *turn => {
                    drop(watch);
                    return self.claim_in_turn(key, turn, hold).await;
                }
                Err(Some(running)) => {
                    running.hold.interrupted.notify_one();
                    if timeout(GRACE, watch.ended()).await.is_err() {
                        self.end(key, running.number);
                    }
                }
                Err(None) => {}
            }
        }
    }

    /// Claims a conversation for a turn if no turn runs in it and `is_next` returns true. Otherwise returns the
    /// running turn, if any.
    fn claim_if(
        self: &Arc<Self>,
        key: &ConversationKey,
        turn: &TurnId,
        hold: &Arc<LeaseState>,
        is_next: impl FnOnce(&Slot) -> bool,
    ) -> Result<ConversationGuard, Option<Running>> {
        let number = self.next_number();
        let is_free = self.change(key, |slot| {
            let is_next = is_next(slot);
            if slot.running.is_some() || !is_next {
                return Err(slot.running.clone());
            }
            slot.running = Some(Running { number, turn: turn.clone(), hold: Arc::clone(hold) });
            Ok(())
        });
        is_free.map(|()| ConversationGuard {
            registry: Arc::clone(self),
            key: key.clone(),
            turn: turn.clone(),
            number,
            hold: Arc::clone(hold),
            beginning: None,
        })
    }

    /// Ends the claim with this number.
    fn end(&self, key: &ConversationKey, number: u64) {
        self.change(key, |slot| {
            if slot.running.take_if(|running| running.number == number).is_some() {
                slot.waiters.wake();
            }
        });
    }
}

impl ConversationGuard {
    /// Claims the conversation again for the same turn, unless another turn runs in it. Returns whether it
    /// succeeded.
    pub(crate) fn renew(&self) -> bool {
        let again = || Running { number: self.number, turn: self.turn.clone(), hold: Arc::clone(&self.hold) };
        self.registry.change(&self.key, |slot| slot.running.get_or_insert_with(again).number == self.number)
    }

    /// Checks whether another turn runs in the conversation by now.
    pub(crate) fn is_lost(&self) -> bool {
        let other = |running: &Running| running.number != self.number;
        self.registry.change(&self.key, |slot| slot.running.as_ref().is_some_and(other))
    }

    /// Ends the claim and wakes waiting turns.
    pub(crate) fn release(&self) {
        self.registry.end(&self.key, self.number);
    }
}

impl Drop for ConversationGuard {
    fn drop(&mut self) {
        if let Some(beginning) = self.beginning.take() {
            self.registry.leave(&self.key, InterruptedTurn { fence: self.hold.fence(), ..beginning });
        }
        self.release();
    }
}

impl LeaseState {
    pub(crate) fn fence(&self) -> Option<FencingToken> {
        *self.lock_fence()
    }

    pub(crate) fn set_fence(&self, fence: FencingToken) {
        *self.lock_fence() = Some(fence);
    }

    fn lock_fence(&self) -> MutexGuard<'_, Option<FencingToken>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseState").field("fence", &self.fence()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use futures::{FutureExt, poll};

    fn setting() -> (Arc<Registry>, ConversationKey, Arc<LeaseState>) {
        (Arc::default(), ConversationKey::new("c").unwrap(), Arc::default())
    }

    fn claim(
        setting: &(Arc<Registry>, ConversationKey, Arc<LeaseState>),
        name: &str,
    ) -> Option<ConversationGuard> {
        setting.0.claim(&setting.1, &turn(name), &setting.2).now_or_never().flatten()
    }

    #[test]
    fn only_one_turn_runs_and_leaves_no_trace() {
        let setting = setting();
        let first = claim(&setting, "a").unwrap();
        assert!(claim(&setting, "b").is_none());
        assert!(claim(&setting, "a").is_none(), "nor the same turn twice");
        drop(first);
        let second = claim(&setting, "b").unwrap();
        assert!(claim(&setting, "c").is_none());
        drop(second);
        assert!(setting.0.is_empty());
    }

    #[tokio::test]
    async fn waiting_turns_begin_in_order_without_trace() {
        let setting = setting();
        let (registry, key, hold) = &setting;
        let running = claim(&setting, "a").unwrap();
        let (b, c, d) = (turn("b"), turn("c"), turn("d"));
        let mut second = Box::pin(registry.claim_in_turn(key, &b, hold));
        let mut dropped = Box::pin(registry.claim_in_turn(key, &c, hold));
        let mut last = Box::pin(registry.claim_in_turn(key, &d, hold));
        for _ in 0..2 {
            assert!(poll!(&mut second).is_pending() && poll!(&mut dropped).is_pending());
            assert!(poll!(&mut last).is_pending());
        }
        drop(running);
        let second = second.now_or_never().unwrap();
        drop(dropped);
        assert!(poll!(&mut last).is_pending());
        drop(second);
        drop(last.now_or_never().unwrap());
        assert!(registry.is_empty());
        let running = claim(&setting, "a").unwrap();
        let mut given_up = Box::pin(registry.claim_in_turn(key, &b, hold));
        assert!(poll!(&mut given_up).is_pending());
        drop(running);
        drop(given_up);
        assert!(registry.is_empty(), "also if the one that was woken gives up");
    }

    #[tokio::test]
    async fn same_turn_waits_for_its_own_woken_run() {
        let setting = setting();
        let (registry, key, hold) = &setting;
        let running = claim(&setting, "a").unwrap();
        let a = turn("a");
        let mut second = Box::pin(registry.claim(key, &a, hold));
        assert!(poll!(&mut second).is_pending());
        drop(running);
        let mut third = Box::pin(registry.claim(key, &a, hold));
        assert!(poll!(&mut third).is_pending());
        drop(second.now_or_never().unwrap());
        assert!(third.now_or_never().unwrap().is_some());
    }

    #[tokio::test]
    async fn nobody_passes_a_turn_that_waits() {
        let setting = setting();
        let (registry, key, hold) = &setting;
        let running = claim(&setting, "a").unwrap();
        let (b, c) = (turn("b"), turn("c"));
        let mut second = Box::pin(registry.claim_in_turn(key, &b, hold));
        assert!(poll!(&mut second).is_pending());
        drop(running);
        // The second turn is woken, but was not polled yet.
        assert!(claim(&setting, "c").is_none());
        let mut third = Box::pin(registry.claim_in_turn(key, &c, hold));
        assert!(poll!(&mut third).is_pending());
        drop(second);
        drop(third.now_or_never().expect("who gives up wakes the next one"));
        assert!(registry.is_empty());
    }

    #[test]
    fn a_turn_goes_on_unless_another_has_begun() {
        let setting = setting();
        let first = claim(&setting, "a").unwrap();
        first.release();
        assert!(first.renew());
        assert!(claim(&setting, "b").is_none());
        first.release();
        assert!(!first.is_lost());
        // The same turn, submitted again, is not the same claim.
        let _second = claim(&setting, "a").unwrap();
        assert!(!first.renew() && first.is_lost());
        drop(first);
        assert!(claim(&setting, "c").is_none(), "a claim ends nothing but itself");
    }

    #[tokio::test]
    async fn the_same_turn_waits_for_itself() {
        let setting = setting();
        let (registry, key, hold) = &setting;
        let running = claim(&setting, "a").unwrap();
        let a = turn("a");
        let mut again = Box::pin(registry.claim(key, &a, hold));
        assert!(poll!(&mut again).is_pending());
        drop(running);
        assert!(again.now_or_never().unwrap().is_some());
        assert!(registry.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn last_turn_replaces_all_earlier_turns() {
        let setting = setting();
        let (registry, key, _) = &setting;
        let running = claim(&setting, "a").unwrap();
        let (b, c) = (turn("b"), turn("c"));
        let holds = [Arc::<LeaseState>::default(), Arc::default()];
        let mut second = Box::pin(registry.claim_in_place(key, &b, &holds[0]));
        let mut last = Box::pin(registry.claim_in_place(key, &c, &holds[1]));
        assert!(poll!(&mut second).is_pending() && poll!(&mut last).is_pending());
        assert!(setting.2.interrupted.notified().now_or_never().is_some(), "the first turn is told");
        running.release();
        let second = second.now_or_never().unwrap();
        assert!(poll!(&mut last).is_pending());
        assert!(holds[0].interrupted.notified().now_or_never().is_some(), "and so is the second");
        // Its stream is not polled, so it does not end by itself.
        let last = last.await;
        assert!(second.is_lost() && running.is_lost() && !last.is_lost());
        drop((running, second, last));
        assert!(registry.is_empty());
    }
}
