use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use advisor_core::{ConversationKey, TurnId};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::conversation::{Registry, Slot};

/// The turns that wait for a conversation.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// In the order in which they came. The first one is woken when no turn runs, and no later one passes it.
    queue: VecDeque<Waiter>,
    /// Wakes all interrupting turns when a turn ends.
    ended: Arc<Notify>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    turn: TurnId,
    first: Arc<Notify>,
}

impl Waiters {
    /// Checks whether the turn is in the queue.
    pub(crate) fn have(&self, turn: &TurnId) -> bool {
        self.queue.iter().any(|waiter| waiter.turn == *turn)
    }

    pub(crate) fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && Arc::strong_count(&self.ended) == 1
    }

    /// Wakes the first waiting turn and all interrupting ones, after the running turn has ended.
    pub(crate) fn wake(&self) {
        self.wake_first();
        self.ended.notify_waiters();
    }

    fn wake_first(&self) {
        if let Some(waiter) = self.queue.front() {
            waiter.first.notify_one();
        }
    }
}

/// A place in the queue. Dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Waiting {
    registry: Arc<Registry>,
    key: ConversationKey,
    number: u64,
    first: Arc<Notify>,
}

impl Waiting {
    pub(crate) fn behind_all(registry: &Arc<Registry>, key: &ConversationKey, turn: &TurnId) -> Self {
        let (number, first) = (registry.next_number(), Arc::new(Notify::new()));
        let waiter = Waiter { number, turn: turn.clone(), first: Arc::clone(&first) };
        registry.change(key, |slot| slot.waiters.queue.push_back(waiter));
        Self { registry: Arc::clone(registry), key: key.clone(), number, first }
    }

    pub(crate) fn is_first(&self, slot: &Slot) -> bool {
        slot.waiters.queue.front().is_some_and(|waiter| waiter.number == self.number)
    }

    /// Waits until the turn may be the first in the queue while no turn runs.
    pub(crate) async fn reached(&self) {
        self.first.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.registry.change(&self.key, |slot| {
            slot.waiters.queue.retain(|waiter| waiter.number != self.number);
            if slot.running.is_none() {
                slot.waiters.wake_first();
            }
        });
    }
}

/// A watch for the end of the running turn of a conversation.
pub(crate) struct Watch {
    registry: Arc<Registry>,
    key: ConversationKey,
    ended: Option<Pin<Box<OwnedNotified>>>,
}

impl Watch {
    /// Starts watching. No end after this call is missed.
    pub(crate) fn new(registry: &Arc<Registry>, key: &ConversationKey) -> Self {
        let ended = registry.change(key, |slot| Arc::clone(&slot.waiters.ended).notified_owned());
        Self { registry: Arc::clone(registry), key: key.clone(), ended: Some(Box::pin(ended)) }
    }

    pub(crate) async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            ended.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended = None;
        // Removes the slot if only this watch kept it.
        self.registry.change(&self.key, |_| {});
    }
}
