//! Tests of `conversation::lock`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::test_logs::turn;
use futures::{FutureExt, poll};

/// A turn that counts its interruptions.
#[derive(Debug)]
struct Interrupted(TurnId, AtomicUsize);

impl Owner for Interrupted {
    fn turn(&self) -> &TurnId {
        &self.0
    }

    fn interrupt(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl Interrupted {
    fn times(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

fn interrupted(name: &str) -> Arc<Interrupted> {
    Arc::new(Interrupted(turn(name), AtomicUsize::new(0)))
}

fn owner(name: &str) -> Arc<dyn Owner> {
    interrupted(name)
}

fn setting() -> (Arc<Locks>, ConversationKey) {
    (Arc::default(), ConversationKey::new("c").unwrap())
}

fn try_lock(setting: &(Arc<Locks>, ConversationKey), name: &str) -> Result<LockGuard, Busy> {
    setting.0.try_lock(&setting.1, &owner(name))
}

#[test]
fn only_one_turn_runs_and_leaves_no_trace() {
    let setting = setting();
    let first = try_lock(&setting, "a").unwrap();
    assert_eq!(try_lock(&setting, "b").unwrap_err(), Busy::OtherTurn);
    assert_eq!(try_lock(&setting, "a").unwrap_err(), Busy::SameTurn, "nor the same turn twice");
    drop(first);
    let second = try_lock(&setting, "b").unwrap();
    assert!(try_lock(&setting, "c").is_err());
    drop(second);
    assert_eq!(setting.0.len(), 0);
}

#[tokio::test]
async fn waiting_turns_begin_in_order_without_trace() {
    let setting = setting();
    let (locks, key) = &setting;
    let running = try_lock(&setting, "a").unwrap();
    let (b, c, d) = (owner("b"), owner("c"), owner("d"));
    let mut second = Box::pin(locks.lock(key, &b));
    let mut dropped = Box::pin(locks.lock(key, &c));
    let mut last = Box::pin(locks.lock(key, &d));
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
    assert_eq!(locks.len(), 0);
    let running = try_lock(&setting, "a").unwrap();
    let mut given_up = Box::pin(locks.lock(key, &b));
    assert!(poll!(&mut given_up).is_pending());
    drop(running);
    drop(given_up);
    assert_eq!(locks.len(), 0, "also if the one that was woken gives up");
}

#[tokio::test]
async fn same_turn_is_recognised_while_its_woken_run_waits() {
    let setting = setting();
    let (locks, key) = &setting;
    let running = try_lock(&setting, "a").unwrap();
    let a = owner("a");
    let mut second = Box::pin(locks.lock(key, &a));
    assert!(poll!(&mut second).is_pending());
    drop(running);
    assert_eq!(try_lock(&setting, "a").unwrap_err(), Busy::SameTurn);
    let mut third = Box::pin(locks.lock(key, &a));
    assert!(poll!(&mut third).is_pending());
    drop(second.now_or_never().unwrap());
    drop(third.now_or_never().unwrap());
    assert_eq!(locks.len(), 0);
}

#[tokio::test]
async fn waiting_turns_keep_their_order() {
    let setting = setting();
    let (locks, key) = &setting;
    let running = try_lock(&setting, "a").unwrap();
    let (b, c) = (owner("b"), owner("c"));
    let mut second = Box::pin(locks.lock(key, &b));
    assert!(poll!(&mut second).is_pending());
    drop(running);
    // The second turn is woken, but was not polled yet.
    assert_eq!(try_lock(&setting, "c").unwrap_err(), Busy::OtherTurn);
    let mut third = Box::pin(locks.lock(key, &c));
    assert!(poll!(&mut third).is_pending());
    drop(second);
    drop(third.now_or_never().expect("a turn that gives up wakes the next one"));
    assert_eq!(locks.len(), 0);
}

#[test]
fn a_turn_goes_on_unless_another_has_begun() {
    let setting = setting();
    let first = try_lock(&setting, "a").unwrap();
    first.unlock();
    assert!(first.relock());
    assert!(try_lock(&setting, "b").is_err());
    first.unlock();
    assert!(!first.is_lost());
    // The same turn, submitted again, is not the same claim.
    let _second = try_lock(&setting, "a").unwrap();
    assert!(!first.relock() && first.is_lost());
    drop(first);
    assert!(try_lock(&setting, "c").is_err(), "a claim ends nothing but itself");
}

#[tokio::test]
async fn interrupting_turn_waits_for_its_own_run() {
    let setting = setting();
    let (locks, key) = &setting;
    let a = interrupted("a");
    let running: Arc<dyn Owner> = Arc::<Interrupted>::clone(&a);
    let running = locks.try_lock(key, &running).unwrap();
    let again = owner("a");
    let mut again = Box::pin(locks.interrupt(key, &again));
    assert!(poll!(&mut again).is_pending());
    assert_eq!(a.times(), 0);
    drop(running);
    assert!(again.now_or_never().is_some());
    assert_eq!(locks.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn last_turn_replaces_all_earlier_turns() {
    let (locks, key) = setting();
    let turns = ["a", "b", "c"].map(interrupted);
    let [a, b, c] = turns.clone().map(|turn| turn as Arc<dyn Owner>);
    let running = locks.try_lock(&key, &a).unwrap();
    let mut second = Box::pin(locks.interrupt(&key, &b));
    let mut last = Box::pin(locks.interrupt(&key, &c));
    assert!(poll!(&mut second).is_pending() && poll!(&mut last).is_pending());
    assert!(turns[0].times() > 0, "the first turn is interrupted");
    running.unlock();
    let second = second.now_or_never().unwrap();
    assert_eq!(turns[1].times(), 0);
    assert!(poll!(&mut last).is_pending());
    assert_eq!(turns[1].times(), 1, "and so is the second");
    // Its stream is not polled, so it does not end by itself.
    let last = last.await;
    assert!(second.is_lost() && running.is_lost() && !last.is_lost());
    drop((running, second, last));
    assert_eq!(locks.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn interrupting_turn_passes_waiting_turns() {
    let setting = setting();
    let (locks, key) = &setting;
    let running = try_lock(&setting, "a").unwrap();
    let (b, c) = (owner("b"), owner("c"));
    let mut waiting = Box::pin(locks.lock(key, &b));
    assert!(poll!(&mut waiting).is_pending());
    let mut interrupting = Box::pin(locks.interrupt(key, &c));
    assert!(poll!(&mut interrupting).is_pending());
    drop(running);
    assert!(poll!(&mut waiting).is_pending(), "although it is polled first");
    let interrupting = interrupting.now_or_never().unwrap();
    assert!(poll!(&mut waiting).is_pending());
    drop(interrupting);
    let waiting = waiting.now_or_never().unwrap();
    let mut given_up = Box::pin(locks.interrupt(key, &c));
    assert!(poll!(&mut given_up).is_pending());
    let mut last = Box::pin(locks.lock(key, &b));
    drop(waiting);
    assert!(poll!(&mut last).is_pending(), "the one that interrupts comes first");
    drop(given_up);
    assert!(last.now_or_never().is_some(), "and wakes the next one when it gives up");
    assert_eq!(locks.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn unpolled_interrupting_turn_delays_no_other() {
    let setting = setting();
    let (locks, key) = &setting;
    let running = try_lock(&setting, "a").unwrap();
    let (b, c) = (owner("b"), owner("c"));
    let mut unpolled = Box::pin(locks.interrupt(key, &b));
    assert!(poll!(&mut unpolled).is_pending());
    let begun = tokio::time::Instant::now();
    let last = locks.interrupt(key, &c).await;
    assert_eq!(begun.elapsed(), GRACE, "the first turn is evicted after its grace");
    assert!(running.is_lost());
    drop((last, unpolled));
    drop(running);
    assert_eq!(locks.len(), 0);
}
