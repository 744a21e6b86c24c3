pub(crate) mod body;
mod slots;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{
    ConversationKey, Error, ErrorKind, OnDrop, OnUnread, SharedTurn, Spawner, TurnId, TurnStream,
};
use futures::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tracing::{Instrument, Span};

use self::slots::{Slot, Slots};
use crate::access::limits::ServerLimits;
use crate::metrics::Metrics;
use crate::refusal::Refusal;

/// The turns of this process that run, and those that ended lately.
#[derive(Debug)]
pub(crate) struct Turns {
    known: Mutex<Known>,
    slots: Slots,
    limits: ServerLimits,
    metrics: Option<Arc<Metrics>>,
    stopping: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Known {
    turns: HashMap<TurnKey, Entry>,
    /// The keys in the order of their start.
    order: VecDeque<TurnKey>,
}

type TurnKey = (ConversationKey, TurnId);

#[derive(Debug)]
struct Entry {
    turn: SharedTurn,
    input: String,
}

impl Turns {
    pub(crate) fn new(limits: ServerLimits, metrics: Option<Arc<Metrics>>) -> Self {
        Self {
            known: Mutex::default(),
            slots: Slots::default(),
            limits,
            metrics,
            stopping: watch::Sender::new(false),
        }
    }

    /// Starts a turn, or joins it if it was submitted before with the same `input`.
    pub(crate) fn start(
        &self,
        key: &TurnKey,
        input: &str,
        on_unread: OnUnread,
        stream: impl FnOnce() -> TurnStream,
    ) -> Result<SharedTurn, Refusal> {
        let mut known = self.lock();
        if self.is_closed() {
            return Err(Refusal::stopping());
        }
        if let Some(entry) = known.turns.get(key) {
            let is_same = entry.input == input;
            let reused = || Refusal::from(&Error::new(ErrorKind::TurnIdReused, "another input"));
            return if is_same { Ok(entry.turn.clone()) } else { Err(reused()) };
        }
        let slot = self.slots.take(key.0.tenant(), &self.limits);
        let slot = slot.ok_or_else(Refusal::too_many_turns)?;
        let (started, ended) = oneshot::channel();
        let spawner = spawner(Running { slot, turn: ended, metrics: self.metrics.clone() });
        let turn = SharedTurn::start_with(stream(), &spawner, on_unread, self.limits.kept_chunks);
        let _ = started.send(turn.clone());
        known.turns.insert(key.clone(), Entry { turn: turn.clone(), input: input.to_owned() });
        known.order.push_back(key.clone());
        known.forget_ended(self.limits.ended_turns_per_tenant, |(of, _)| of.tenant() == key.0.tenant());
        known.forget_ended(self.limits.ended_turns, |_| true);
        Ok(turn)
    }

    /// Returns the turn of a conversation that runs, if one does.
    pub(crate) fn running(&self, conversation: &ConversationKey) -> Option<(TurnId, SharedTurn)> {
        let known = self.lock();
        let keys = known.order.iter().rev().filter(|(of, _)| of == conversation);
        let mut turns = keys.filter_map(|key| Some((key.1.clone(), known.turns.get(key)?.turn.clone())));
        turns.find(|(_, turn)| !turn.has_ended())
    }

    /// Returns a turn that runs or has ended lately.
    pub(crate) fn find(&self, key: &TurnKey) -> Option<SharedTurn> {
        self.lock().turns.get(key).map(|entry| entry.turn.clone())
    }

    /// Removes the ended turns of a deleted conversation, so that nobody reads or joins them.
    pub(crate) fn forget(&self, conversation: &ConversationKey) {
        let mut known = self.lock();
        let Known { turns, order } = &mut *known;
        order.retain(|key| {
            let goes = &key.0 == conversation && turns.get(key).is_none_or(|entry| entry.turn.has_ended());
            if goes {
                turns.remove(key);
            }
            !goes
        });
    }

    /// Returns the number of turns that run.
    pub(crate) fn running_count(&self) -> usize {
        self.slots.count()
    }

    /// Returns the number of readers of all turns.
    pub(crate) fn readers(&self) -> usize {
        self.lock().turns.values().map(|entry| entry.turn.readers()).sum()
    }

    /// Takes no further turn.
    pub(crate) fn close(&self) {
        // No turn starts between the check and the beginning of a turn.
        let _known = self.lock();
        self.stopping.send_replace(true);
    }

    /// Checks whether no further turn is taken.
    pub(crate) fn is_closed(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until no turn runs.
    pub(crate) async fn ended(&self) {
        self.slots.all_free().await;
    }

    /// Stops the running turns. Memory keeps the shown text.
    pub(crate) fn stop_all(&self) {
        for entry in self.lock().turns.values() {
            entry.turn.handle().cancel(OnDrop::KeepPartial);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Removes the oldest of these turns that have ended, beyond this number.
    fn forget_ended(&mut self, most: usize, among: impl Fn(&TurnKey) -> bool) {
        let ended = |turns: &HashMap<TurnKey, Entry>, key: &TurnKey| {
            among(key) && turns.get(key).is_none_or(|entry| entry.turn.has_ended())
        };
        let mut surplus =
            self.order.iter().filter(|key| ended(&self.turns, key)).count().saturating_sub(most);
        let turns = &mut self.turns;
        self.order.retain(|key| {
            let goes = surplus > 0 && ended(turns, key);
            if goes {
                surplus -= 1;
                turns.remove(key);
            }
            !goes
        });
    }
}

/// The slot of a running turn, and its handle.
struct Running {
    slot: Slot,
    turn: oneshot::Receiver<SharedTurn>,
    metrics: Option<Arc<Metrics>>,
}

impl Running {
    async fn run(self, work: BoxFuture<'static, ()>) {
        work.await;
        if let (Some(metrics), Ok(turn)) = (self.metrics, self.turn.await) {
            metrics.turn_ended(&turn);
        }
        drop(self.slot);
    }
}

/// Returns a spawner for the one task of a turn.
fn spawner(running: Running) -> Spawner {
    let running = Mutex::new(Some(running));
    Spawner::new(move |work: BoxFuture<'static, ()>| {
        let running = running.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The turn's span is inside that of the request that has started it.
        let span = Span::current();
        drop(running.map(|running| tokio::spawn(running.run(work).instrument(span))));
    })
}
