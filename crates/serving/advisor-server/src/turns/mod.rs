//! `Turns`: the turns that run, and those that ended lately.
//!
//! A turn has one driver, which is not the connection of a client. So a connection that breaks loses no chunk.

pub(crate) mod body;
mod elsewhere;
mod relaying;
pub(crate) mod run;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{ConversationKey, Error, ErrorKind, Message, OnDrop, TurnId, TurnStream};
use chat_memory_advisor::MemoryReceipt;
use tokio::sync::{Semaphore, watch};

use self::elsewhere::{Relayed, TurnPlace};
use self::relaying::Relaying;
use self::run::Run;
use crate::access::limits::ServerLimits;
use crate::refusal::Refusal;
use crate::relay::TurnRelay;
use crate::relay::reader::RelayLink;
use crate::shared_turn::{SharedTurn, TurnReading};
use crate::turns::run::{OnDisconnect, Said, Slot, Slots};

/// The turns of this process that run, and those that ended lately.
#[derive(Debug)]
pub(crate) struct Turns {
    /// In the order of their start.
    known: Mutex<Vec<Entry>>,
    slots: Slots,
    limits: ServerLimits,
    relay: Option<RelayLink>,
    stopping: watch::Sender<bool>,
    /// Each turn that is relayed has a receiver.
    relaying: watch::Sender<()>,
    /// The places of ended turns that wait for the relay: as many as turns may run.
    unrelayed: Arc<Semaphore>,
}

/// The turn that a request asks for.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) key: &'a TurnKey,
    pub(crate) id: IdOrigin,
    /// The digest of the input.
    pub(crate) input: &'a str,
    /// The messages of the user in the input.
    pub(crate) said: &'a [Said],
    pub(crate) on_disconnect: OnDisconnect,
}

/// The origin of the id of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdOrigin {
    /// The client has chosen it, and may submit the turn again.
    Client,
    /// The server has made it for this request.
    Server,
    /// It is that of the conversation's last turn, which the client repeats without its id.
    Memory,
}

/// A conversation, and the turn in it.
type TurnKey = (ConversationKey, TurnId);

/// A turn of this process.
#[derive(Debug, Clone)]
struct Entry {
    key: TurnKey,
    run: Run,
    /// The digest of its input.
    input: String,
    /// The messages of the user in it.
    said: Vec<Said>,
    relayed: Relayed,
}

impl Turns {
    pub(crate) fn new(limits: ServerLimits, relay: Option<Arc<dyn TurnRelay>>) -> Self {
        Self {
            known: Mutex::default(),
            slots: Slots::default(),
            limits,
            relay: relay.map(|relay| RelayLink::new(relay, limits.relay_timeout)),
            stopping: watch::Sender::new(false),
            relaying: watch::Sender::new(()),
            unrelayed: Arc::new(Semaphore::new(limits.running_turns.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Starts a turn, or joins it if it was submitted before with the same input, here or in another process.
    ///
    /// A turn that starts is first prepared. This may call functions of the application, so it happens without the lock.
    /// Its memory notes in the receipt that it has the turn.
    pub(crate) async fn start<S: FnOnce(MemoryReceipt) -> TurnStream>(
        &self,
        asked: &Asked<'_>,
        prepare: impl FnOnce() -> S + Send,
    ) -> Result<TurnReading, Refusal> {
        self.forget_expired(asked.key).await;
        self.let_void_end(asked.key).await;
        let slot = {
            // No slot is taken once the server is closed.
            let known = self.lock();
            if let Some(turn) = self.submitted_before(submitted(&known, asked.key), asked)? {
                return Ok(turn.read().into_stream());
            }
            self.slots.take(asked.key.0.tenant(), &self.limits).ok_or_else(Refusal::too_many_turns)?
        };
        match self.claim(asked).await? {
            TurnPlace::Here(relaying) => {
                let turn = self.begin(asked, slot, relaying, prepare())?;
                Ok(turn.read().into_stream())
            }
            TurnPlace::Elsewhere(reading) => Ok(reading),
        }
    }

    /// Returns the turn of this entry, if there is one and it has the same input.
    fn submitted_before(
        &self,
        entry: Option<&Entry>,
        asked: &Asked<'_>,
    ) -> Result<Option<SharedTurn>, Refusal> {
        if self.is_closed() {
            return Err(Refusal::stopping());
        }
        match entry {
            // Memory has compared the messages of a turn that the client does not name.
            Some(entry) if entry.input == asked.input || asked.id == IdOrigin::Memory => {
                Ok(Some(entry.run.turn.clone()))
            }
            Some(_) => Err(reused()),
            None => Ok(None),
        }
    }

    /// Starts a turn, unless another request has done so meanwhile.
    fn begin(
        &self,
        asked: &Asked<'_>,
        slot: Slot,
        relaying: Option<Relaying>,
        stream: impl FnOnce(MemoryReceipt) -> TurnStream,
    ) -> Result<SharedTurn, Refusal> {
        let mut known = self.lock();
        // A running copy serves, too: a second one would only wait for the first.
        let running = find(&known, asked.key).filter(|entry| !entry.run.turn.has_ended());
        let entry = submitted(&known, asked.key).or(running.filter(|entry| !entry.run.is_void()));
        if let Some(turn) = self.submitted_before(entry, asked)? {
            return Ok(turn);
        }
        let receipt = MemoryReceipt::default();
        let stream = stream(receipt.clone());
        let on_unread = asked.on_disconnect.on_unread(stream.on_drop());
        let turn = SharedTurn::start(stream, slot, on_unread, self.limits);
        let run = Run { turn: turn.clone(), receipt, id: asked.id };
        let relayed = relaying.map(|relaying| self.relay(relaying, run.clone())).unwrap_or_default();
        let (key, tenant) = (asked.key.clone(), asked.key.0.tenant());
        known.retain(|entry| entry.key != key);
        known.push(Entry { key, run, input: asked.input.to_owned(), said: asked.said.to_vec(), relayed });
        forget_ended(&mut known, self.limits.ended_turns_per_tenant, |(of, _)| of.tenant() == tenant);
        forget_ended(&mut known, self.limits.ended_turns, |_| true);
        Ok(turn)
    }

    /// Returns the turns of a conversation that run or wait in this process, in the order of their start.
    fn running_here(&self, conversation: &ConversationKey) -> Vec<(TurnId, Run)> {
        let known = self.lock();
        let running = known
            .iter()
            .filter(|entry| entry.key.0 == *conversation && entry.is_owned() && !entry.run.turn.has_ended());
        running.map(|entry| (entry.key.1.clone(), entry.run.clone())).collect()
    }

    /// Returns the turns of a conversation that an advisor outside memory has answered, among those that this process keeps:
    /// the messages of the user, and the answer.
    pub(crate) fn answered_outside_memory(
        &self,
        conversation: &ConversationKey,
    ) -> Vec<(Vec<Said>, Option<Message>)> {
        let is_outside = |run: &Run| run.is_outside_memory() && run.turn.error().is_none();
        let outside: Vec<_> = {
            let known = self.lock();
            let entries = known.iter().filter(|entry| entry.key.0 == *conversation && is_outside(&entry.run));
            entries.map(|entry| (entry.said.clone(), entry.run.clone())).collect()
        };
        outside.into_iter().map(|(said, run)| (said, run.turn.answer())).collect()
    }

    fn entry(&self, key: &TurnKey) -> Option<Entry> {
        find(&self.lock(), key).cloned()
    }

    /// Cancels a copy of a turn that another process owns.
    fn stop_copy(&self, key: &TurnKey) {
        if let Some(copy) = find(&self.lock(), key).filter(|entry| !entry.is_owned()) {
            copy.run.turn.handle().cancel(OnDrop::KeepPartial);
        }
    }

    /// Removes a run, unless the turn has begun again meanwhile.
    fn remove(&self, key: &TurnKey, run: &Entry) {
        self.lock().retain(|entry| entry.key != *key || !entry.relayed.is_same(&run.relayed));
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
        for entry in self.lock().iter() {
            entry.run.turn.handle().cancel(OnDrop::KeepPartial);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Checks whether this process owns the turn, as far as it knows.
    fn is_owned(&self) -> bool {
        !self.relayed.is_copy()
    }
}

fn find<'a>(known: &'a [Entry], key: &TurnKey) -> Option<&'a Entry> {
    known.iter().find(|entry| entry.key == *key)
}

/// Finds a turn, unless another process owns it.
fn owned<'a>(known: &'a [Entry], key: &TurnKey) -> Option<&'a Entry> {
    find(known, key).filter(|entry| entry.is_owned())
}

/// Finds a turn that a repeated request joins. A void one begins again instead.
fn submitted<'a>(known: &'a [Entry], key: &TurnKey) -> Option<&'a Entry> {
    owned(known, key).filter(|entry| !entry.run.is_void())
}

/// Removes the oldest of these turns that have ended, beyond this number.
fn forget_ended(known: &mut Vec<Entry>, most: usize, among: impl Fn(&TurnKey) -> bool) {
    let has_ended = |entry: &Entry| among(&entry.key) && entry.run.turn.has_ended();
    let mut surplus = known.iter().filter(|entry| has_ended(entry)).count().saturating_sub(most);
    known.retain(|entry| {
        let goes = surplus > 0 && has_ended(entry);
        surplus -= usize::from(goes);
        !goes
    });
}

fn reused() -> Refusal {
    Refusal::from(&Error::new(
        ErrorKind::TurnIdReused,
        "the turn was begun with another input, or at another place of the conversation; give a new turn a new id",
    ))
}
