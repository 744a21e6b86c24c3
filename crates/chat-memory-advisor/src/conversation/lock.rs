//! A fair asynchronous lock for each conversation, within this process. It does not depend on the protected state.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::conversation::map::{ConversationMap, Weight};

/// The locks of the conversations in which turns of this process run or wait to run.
pub(crate) type Locks = ConversationMap<Lock>;

/// A turn that takes locks.
///
/// A trait, although only `LeaseState` implements it: locks need neither turns nor leases, and their tests observe
/// interruptions.
pub(crate) trait Owner: fmt::Debug + Send + Sync {
    /// Returns the id of the turn.
    fn turn(&self) -> &TurnId;

    /// Asks the turn to end, because another turn takes over its lock.
    fn interrupt(&self);
}

/// The lock of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    holder: Option<Claim>,
    /// The turns that interrupt the holder, then the others; each group in order of arrival.
    queue: VecDeque<Waiter>,
}

/// A request of a turn for the lock.
#[derive(Debug, Clone)]
struct Claim {
    /// Distinguishes it from other claims of the turn, which may be submitted twice.
    number: u64,
    owner: Arc<dyn Owner>,
}

#[derive(Debug)]
struct Waiter {
    claim: Claim,
    precedence: Precedence,
    woken: Arc<Notify>,
}

/// The turns that a waiting turn waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precedence {
    /// The holder and all turns in the queue.
    Queue,
    /// Only turns that interrupt the holder, as it does.
    Interrupt,
}

/// A position at a lock: the turn holds the lock, waits for it, or did so before. Dropping it gives up the
/// position.
#[derive(Debug)]
pub(crate) struct LockGuard {
    locks: Arc<Locks>,
    key: ConversationKey,
    claim: Claim,
}

/// The turn that keeps a lock busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// The same turn, submitted before.
    SameTurn,
    OtherTurn,
}

/// The time in which an interrupted turn must release the lock. A turn whose stream is not polled does not do so.
const GRACE: Duration = Duration::from_secs(5);

impl ConversationMap<Lock> {
    /// Takes the lock, unless a turn holds it or waits for it.
    pub(crate) fn try_lock(
        self: &Arc<Self>,
        key: &ConversationKey,
        owner: &Arc<dyn Owner>,
    ) -> Result<LockGuard, Busy> {
        let guard = self.guard(key, owner);
        self.change(key, |lock| {
            if lock.weight() == 0 {
                lock.holder = Some(guard.claim.clone());
                return Ok(());
            }
            Err(if lock.has(owner.turn()) { Busy::SameTurn } else { Busy::OtherTurn })
        })?;
        Ok(guard)
    }

    /// Takes the lock after all turns that hold it or wait for it.
    pub(crate) async fn lock(self: &Arc<Self>, key: &ConversationKey, owner: &Arc<dyn Owner>) -> LockGuard {
        let guard = self.guard(key, owner);
        let woken = guard.wait(Precedence::Queue);
        while guard.take().is_err() {
            woken.notified().await;
        }
        guard
    }

    /// Takes the lock ahead of waiting turns: interrupts the holder, and evicts it if it does not release the lock
    /// in time. If the holder is the same turn, waits behind all others instead.
    ///
    /// Several interrupting turns do not wait for each other: the first that is polled takes a free lock, and the
    /// others interrupt it in turn. So a turn that is not polled delays no other turn.
    pub(crate) async fn interrupt(
        self: &Arc<Self>,
        key: &ConversationKey,
        owner: &Arc<dyn Owner>,
    ) -> LockGuard {
        let guard = self.guard(key, owner);
        let woken = guard.wait(Precedence::Interrupt);
        while let Err(holder) = guard.take() {
            match holder {
                None => woken.notified().await,
                Some(holder) if holder.owner.turn() == owner.turn() => {
                    drop(guard);
                    return self.lock(key, owner).await;
                }
                Some(holder) => {
                    holder.owner.interrupt();
                    if timeout(GRACE, woken.notified()).await.is_err() {
                        self.unlock(key, holder.number);
                    }
                }
            }
        }
        guard
    }

    /// Checks whether a turn holds the lock.
    pub(crate) fn is_held(&self, key: &ConversationKey) -> bool {
        self.read(key, |lock| lock.holder.is_some()).unwrap_or_default()
    }

    /// Returns the turn that holds the lock.
    pub(crate) fn holder(&self, key: &ConversationKey) -> Option<TurnId> {
        self.read(key, |lock| Some(lock.holder.as_ref()?.owner.turn().clone())).flatten()
    }

    /// Checks whether a turn holds the lock or waits for it.
    pub(crate) fn is_used(&self, key: &ConversationKey) -> bool {
        self.read(key, |_| ()).is_some()
    }

    /// Checks whether this turn holds the lock or waits for it.
    pub(crate) fn is_used_by(&self, key: &ConversationKey, turn: &TurnId) -> bool {
        self.read(key, |lock| lock.has(turn)).unwrap_or_default()
    }

    fn guard(self: &Arc<Self>, key: &ConversationKey, owner: &Arc<dyn Owner>) -> LockGuard {
        let claim = Claim { number: self.next_number(), owner: Arc::clone(owner) };
        LockGuard { locks: Arc::clone(self), key: key.clone(), claim }
    }

    /// Ends the claim with this number, and wakes a waiting turn if the lock is free afterwards.
    fn unlock(&self, key: &ConversationKey, number: u64) {
        self.change_known(key, |lock| {
            lock.queue.retain(|waiter| waiter.claim.number != number);
            lock.holder.take_if(|holder| holder.number == number);
            if lock.holder.is_none() {
                lock.wake();
            }
        });
    }
}

impl Lock {
    fn has(&self, turn: &TurnId) -> bool {
        let waiting = self.queue.iter().map(|waiter| &waiter.claim);
        self.holder.iter().chain(waiting).any(|claim| claim.owner.turn() == turn)
    }

    /// Wakes the first waiting turn. If it interrupts the holder, also wakes all other turns that do.
    fn wake(&self) {
        for waiter in self.queue.iter().take(self.interrupting().max(1)) {
            waiter.woken.notify_one();
        }
    }

    /// Returns the number of waiting turns that interrupt the holder. They are first in the queue.
    fn interrupting(&self) -> usize {
        self.queue.iter().take_while(|waiter| waiter.precedence == Precedence::Interrupt).count()
    }
}

impl Weight for Lock {
    const MOST: usize = usize::MAX;

    fn weight(&self) -> usize {
        usize::from(self.holder.is_some()) + self.queue.len()
    }
}

impl LockGuard {
    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// Takes the lock again, unless another turn holds it. Returns whether this turn holds it now.
    pub(crate) fn relock(&self) -> bool {
        self.locks.change(&self.key, |lock| {
            lock.holder.get_or_insert_with(|| self.claim.clone()).number == self.claim.number
        })
    }

    /// Checks whether another turn holds the lock by now, after this one released it or was evicted.
    pub(crate) fn is_lost(&self) -> bool {
        let other = |lock: &Lock| lock.holder.as_ref().is_some_and(|held| held.number != self.claim.number);
        self.locks.read(&self.key, other).unwrap_or_default()
    }

    /// Releases the lock, if this turn holds it.
    pub(crate) fn unlock(&self) {
        self.locks.unlock(&self.key, self.claim.number);
    }

    /// Enters the queue. Returns the notification that wakes the turn when the lock may be free for it.
    fn wait(&self, precedence: Precedence) -> Arc<Notify> {
        let woken = Arc::new(Notify::new());
        let waiter = Waiter { claim: self.claim.clone(), precedence, woken: Arc::clone(&woken) };
        self.locks.change(&self.key, |lock| {
            let position = match precedence {
                Precedence::Queue => lock.queue.len(),
                Precedence::Interrupt => lock.interrupting(),
            };
            lock.queue.insert(position, waiter);
        });
        woken
    }

    /// Takes the lock and leaves the queue, if the lock is free and this turn may take it next. Otherwise returns
    /// the holder, if any.
    fn take(&self) -> Result<(), Option<Claim>> {
        let is_this = |waiter: &Waiter| waiter.claim.number == self.claim.number;
        self.locks.change(&self.key, |lock| {
            if lock.holder.is_some() {
                return Err(lock.holder.clone());
            }
            let may_take = lock.interrupting().max(1);
            match lock.queue.iter().take(may_take).position(is_this) {
                Some(place) => lock.holder = lock.queue.remove(place).map(|waiter| waiter.claim),
                None => return Err(None),
            }
            Ok(())
        })
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.unlock();
    }
}

#[cfg(test)]
mod tests;
