//! Who may run (`OnBusy`): the fair lock of a conversation within this process (`Lock`, `Hold`), and the lease of a turn across
//! processes (`TurnLease`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use advisor_core::{ConversationKey, Error, ErrorKind, Result, Turn, TurnId};
use conversation_store::{ConversationStore, FencingToken, Leases, StoreError};
use futures::future::pending;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::conversation::unfinished::UnfinishedTurn;
use crate::conversation::{HeldLease, Registry, change_in_time, not_loaded};

/// The policy for a turn that starts while another turn of its conversation is running.
///
/// The other turn runs in this process or, if the store grants [leases](conversation_store::Leases), in any other.
/// The same turn, submitted again under its id, always waits for the outcome of the run in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBusy {
    /// Fails at once, with an error of kind [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy). A
    /// turn that waits for the conversation counts as running.
    #[default]
    Reject,
    /// Waits until the conversation is free. Waiting turns begin in the order in which they came: those of one process,
    /// and among the processes that share a store with [leases](conversation_store::Leases) the first one of each.
    /// Only a turn that interrupts passes them, in another process for at most ten seconds.
    ///
    /// So a turn waits for the running turn and for those before it, and never for one that came later. A turn that
    /// waits for another process requests the lease again after 25 ms, then after pauses that double up to 250 ms; a
    /// conversation stays free for at most that time between two turns. A waiting turn must be polled, like a running
    /// one: the turns of its process behind it wait for it. Other processes pass it if it is not polled for three
    /// seconds. To bound the wait, drop the turn after a time.
    ///
    /// Dropping a waiting turn leaves no trace, unless the store grants the lease at that moment. Then the
    /// conversation stays held for other processes until the lease expires. A turn that is run inside another turn
    /// of the same conversation waits forever: give it a separate conversation.
    Queue,
    /// Ends the running turn as if it had been cancelled, then begins the new one. Until it begins, the new turn
    /// waits ahead of all turns that queue, and must be polled like them. But if a turn of another process has waited
    /// for ten seconds, the new turn waits behind it, and interrupts no other one meanwhile. The text that was shown is kept with a
    /// marker. The stream of the interrupted turn returns an error of kind
    /// [`Cancelled`](advisor_core::ErrorKind::Cancelled). A turn that is interrupted before its beginning was
    /// stored leaves nothing, not even the user's message.
    /// A turn with decisions interrupts none, since the running one may run the same calls.
    ///
    /// A turn whose stream is not polled cannot end by itself. The new turn evicts it after five seconds. A turn
    /// of another process is evicted at once. The text that an evicted turn had shown of an unfinished answer is
    /// not kept.
    ///
    /// An evicted turn of this process ends with `Cancelled` when it is polled again. The kind can be
    /// [`Fenced`](advisor_core::ErrorKind::Fenced) if it was writing its end, or runs without a
    /// [`TurnStream`](advisor_core::TurnStream). A turn of another process notices when it next writes or renews
    /// its lease, and ends with `Fenced`.
    InterruptPrevious,
}

/// The lock of a conversation: the turn that runs in it, and those that wait.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) holder: Option<Claim>,
    /// The turns that interrupt the holder, then the others; each group in order of arrival.
    queue: VecDeque<Claim>,
}

/// A request of a turn for the lock.
#[derive(Clone)]
pub(super) struct Claim {
    /// Distinguishes it from other claims of the turn, which may be submitted twice.
    number: u64,
    turn: Arc<TurnLease>,
    /// Whether it waits only for turns that interrupt the holder, as it does.
    interrupts: bool,
    /// Wakes the turn when the lock may be free for it.
    woken: Arc<Notify>,
}

/// A position at the lock: the turn holds it, waits for it, or did so before. Dropping it gives up the position.
pub(crate) struct Hold {
    claim: Claim,
    /// The turn as unfinished, while its start may be written but is not confirmed.
    pub(crate) unconfirmed: Option<UnfinishedTurn>,
}

/// The turn that keeps a lock busy.
#[derive(Debug, PartialEq, Eq)]
enum Busy {
    /// The same turn, submitted before.
    SameTurn,
    OtherTurn,
}

/// The time in which an interrupted turn must release the lock. A turn whose stream is not polled does not do so.
const GRACE: Duration = Duration::from_secs(5);

impl Lock {
    /// Checks whether no turn holds the lock or waits for it.
    pub(super) fn is_free(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty()
    }

    /// Checks whether this turn holds the lock or waits for it.
    pub(super) fn is_used_by(&self, turn: &TurnId) -> bool {
        self.holder.iter().chain(&self.queue).any(|claim| claim.turn.id == *turn)
    }

    /// Returns the number of waiting turns that interrupt the holder. They are first in the queue.
    fn interrupting(&self) -> usize {
        self.queue.iter().take_while(|claim| claim.interrupts).count()
    }

    /// Gives the lock to a waiting claim, if the lock is free and this turn may take it next. Otherwise returns the
    /// holder, if any.
    fn take(&mut self, number: u64) -> Result<(), Option<Claim>> {
        if self.holder.is_some() {
            return Err(self.holder.clone());
        }
        let may_take = self.interrupting().max(1);
        let place = self.queue.iter().take(may_take).position(|claim| claim.number == number);
        self.holder = self.queue.remove(place.ok_or(None)?);
        Ok(())
    }

    /// Ends a claim. If the lock is free afterwards, wakes the first waiting turn, and if that interrupts the holder,
    /// all others that do.
    fn end(&mut self, number: u64) {
        self.queue.retain(|claim| claim.number != number);
        self.holder.take_if(|holder| holder.number == number);
        if self.holder.is_none() {
            let next = self.queue.iter().take(self.interrupting().max(1));
            next.for_each(|claim| claim.woken.notify_one());
        }
    }
}

impl Claim {
    pub(super) fn turn_id(&self) -> &TurnId {
        &self.turn.id
    }

    /// Changes the lock of the conversation.
    fn change<R>(&self, change: impl FnOnce(&mut Lock) -> R) -> R {
        self.turn.registry.change(&self.turn.key, |known| change(&mut known.lock))
    }

    fn end(&self) {
        self.change(|lock| lock.end(self.number));
    }
}

impl Hold {
    fn new(turn: &Arc<TurnLease>, interrupts: bool) -> Self {
        let number = turn.registry.next_number();
        let claim = Claim { number, turn: Arc::clone(turn), interrupts, woken: Arc::default() };
        Self { claim, unconfirmed: None }
    }

    /// Creates a position in the queue.
    fn in_queue(turn: &Arc<TurnLease>, interrupts: bool) -> Self {
        let hold = Self::new(turn, interrupts);
        hold.claim.change(|lock| {
            let place = if interrupts { lock.interrupting() } else { lock.queue.len() };
            lock.queue.insert(place, hold.claim.clone());
        });
        hold
    }

    fn take(&self) -> Result<(), Option<Claim>> {
        self.claim.change(|lock| lock.take(self.claim.number))
    }

    /// Takes the lock again, unless another turn holds it. Returns whether this turn holds it now.
    fn relock(&self) -> bool {
        let claim = &self.claim;
        claim.change(|lock| lock.holder.get_or_insert_with(|| claim.clone()).number == claim.number)
    }

    /// Checks whether another turn holds the lock by now, after this one released it or was evicted.
    pub(crate) fn is_lost(&self) -> bool {
        let TurnLease { registry, key, .. } = &*self.claim.turn;
        let holder = registry.read(key, |known| known.lock.holder.as_ref().map(|holder| holder.number));
        holder.flatten().is_some_and(|number| number != self.claim.number)
    }

    /// Releases the lock and wakes waiting turns. The lease may be evicted from now on.
    pub(crate) fn release(&self) {
        self.claim.end();
        self.claim.turn.registry.evict_lease(&self.claim.turn.key);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Before the release, so that the next turn finds it.
        if let Some(turn) = self.unconfirmed.take() {
            let own = &self.claim.turn;
            own.registry.register(&own.key, UnfinishedTurn { token: own.token(), ..turn });
        }
        self.release();
    }
}

/// The right of a turn to run in a conversation: its lease in the store, if that grants leases, and its interruption.
pub(crate) struct TurnLease {
    store: Arc<dyn ConversationStore>,
    registry: Arc<Registry>,
    key: ConversationKey,
    id: TurnId,
    /// The turn owns this state, through its extensions.
    turn: Weak<Turn>,
    ttl: Duration,
    /// Whether another turn has interrupted this one.
    interrupted: AtomicBool,
    /// The fencing token of its lease, if it has one.
    token: Mutex<Option<FencingToken>>,
    /// Held during a renewal, so that a released lease is not renewed afterwards.
    renewing: tokio::sync::Mutex<()>,
    /// Whether the lease is being released or was. Its holder needs it no longer: it is not renewed, and losing it is no
    /// error. This is set before `renewing` is awaited, which a renewal may hold.
    released: AtomicBool,
    /// The number of renewals that the store did not answer; they may still take effect.
    unanswered_renewals: AtomicU32,
}

/// The first and the longest pause before another request for a held lease. The longest is far below the time for
/// which a request keeps a place in the queue.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

impl TurnLease {
    pub(crate) fn new(
        store: Arc<dyn ConversationStore>,
        registry: &Arc<Registry>,
        key: ConversationKey,
        turn: &Arc<Turn>,
        ttl: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            registry: Arc::clone(registry),
            key,
            id: turn.id().clone(),
            turn: Arc::downgrade(turn),
            ttl,
            interrupted: AtomicBool::new(false),
            token: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            released: AtomicBool::new(false),
            unanswered_renewals: AtomicU32::new(0),
        })
    }

    pub(crate) fn token(&self) -> Option<FencingToken> {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the conversation, in this process and across processes, under the policy `on_busy`. Without one, fails
    /// at once if another turn runs in it.
    pub(crate) async fn acquire(self: &Arc<Self>, on_busy: Option<OnBusy>) -> Result<Hold> {
        let hold = match on_busy {
            Some(OnBusy::Queue) => self.lock().await,
            Some(OnBusy::InterruptPrevious) => self.lock_ahead().await,
            _ => match self.try_lock() {
                Err(Busy::SameTurn) if on_busy.is_some() => self.lock().await,
                locked => locked.map_err(|_| busy())?,
            },
        };
        if let Some(leases) = self.store.leases() {
            self.acquire_lease(leases, on_busy).await?;
            self.released.store(false, Ordering::Relaxed);
        }
        Ok(hold)
    }

    /// Takes the lock, unless a turn holds it or waits for it.
    fn try_lock(self: &Arc<Self>) -> Result<Hold, Busy> {
        let hold = Hold::new(self, false);
        hold.claim.change(|lock| {
            if lock.is_free() {
                lock.holder = Some(hold.claim.clone());
                return Ok(());
            }
            Err(if lock.is_used_by(&self.id) { Busy::SameTurn } else { Busy::OtherTurn })
        })?;
        Ok(hold)
    }

    /// Takes the lock after all turns that hold it or wait for it.
    async fn lock(self: &Arc<Self>) -> Hold {
        let hold = Hold::in_queue(self, false);
        while hold.take().is_err() {
            hold.claim.woken.notified().await;
        }
        hold
    }

    /// Takes the lock ahead of waiting turns: interrupts the holder, and evicts it if it does not release the lock
    /// in time. If the holder is the same turn, waits behind all others instead.
    ///
    /// Several interrupting turns do not wait for each other: the first that is polled takes a free lock, and the
    /// others interrupt it in turn. So a turn that is not polled delays no other turn.
    async fn lock_ahead(self: &Arc<Self>) -> Hold {
        let hold = Hold::in_queue(self, true);
        while let Err(holder) = hold.take() {
            let Some(holder) = holder else {
                hold.claim.woken.notified().await;
                continue;
            };
            if holder.turn.id == self.id {
                drop(hold);
                return self.lock().await;
            }
            holder.turn.interrupt();
            if timeout(GRACE, hold.claim.woken.notified()).await.is_err() {
                holder.end();
            }
        }
        hold
    }

    /// Asks the turn to end, because another turn takes over its lock.
    fn interrupt(&self) {
        // Only once: many turns may interrupt a turn that is not polled.
        if !self.interrupted.swap(true, Ordering::Relaxed)
            && let Some(turn) = self.turn.upgrade()
        {
            let taken = "a newer turn of the conversation has taken this one's place";
            turn.attach(async move { Error::new(ErrorKind::Cancelled, taken) });
        }
    }

    /// Requests the lease from the store until the turn has it, or may not wait.
    async fn acquire_lease(&self, leases: &dyn Leases, on_busy: Option<OnBusy>) -> Result<()> {
        // The turn may take over a lease that an earlier turn of this process still holds. It may also take over
        // one whose request was dropped before the store's answer arrived.
        let HeldLease { token: mut takeover_from, unanswered_requests: mut unanswered } =
            self.registry.lease(&self.key);
        let interrupts = on_busy == Some(OnBusy::InterruptPrevious);
        let waits = interrupts || on_busy == Some(OnBusy::Queue);
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.request_lease(leases, takeover_from, waits).await {
                // The store may have granted the lease to this request; the next answer shows it.
                Err(StoreError::OutcomeUnknown { .. }) if !unanswered.contains(&self.id) => {
                    unanswered.push(self.id.clone());
                }
                // Takes over one of two leases. No turn runs under that of an unanswered request of this process.
                // The other is that of the interrupted turn, whose appends are refused from then on.
                // A takeover that is refused must wait: another turn has waited for long.
                Err(StoreError::Locked { turn, token, .. })
                    if takeover_from != Some(token)
                        && (unanswered.contains(&turn) || (interrupts && turn != self.id)) =>
                {
                    unanswered.retain(|known| *known != turn);
                    takeover_from = Some(token);
                }
                Err(StoreError::Locked { turn, remaining, .. })
                    if waits || (on_busy.is_some() && turn == self.id) =>
                {
                    sleep(pause.min(remaining)).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
                Ok(_) => return Ok(()),
                Err(StoreError::Locked { .. }) => {
                    self.registry.change_lease(&self.key, |lease| lease.unanswered_requests.clear());
                    return Err(busy());
                }
                Err(error) => return Err(not_loaded(error)),
            }
        }
    }

    /// Sends one request for the lease. Notes it until it is answered, and the lease that the store grants.
    async fn request_lease(
        &self,
        leases: &dyn Leases,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken, StoreError> {
        let Self { registry, key, id, ttl, .. } = self;
        registry.change_lease(key, |lease| lease.unanswered_requests.push(id.clone()));
        let answer = change_in_time(leases.acquire(key, id, *ttl, takeover_from, waits)).await;
        match &answer {
            Err(StoreError::OutcomeUnknown { .. }) => {}
            // Another lease is granted, so all requests without an answer had no effect.
            Ok(token) => {
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(*token);
                registry.change_lease(key, |lease| lease.unanswered_requests.clear());
                registry.note_lease(key, *token);
            }
            Err(_) => registry.change_lease(key, |lease| {
                if let Some(answered) = lease.unanswered_requests.iter().rposition(|asked| asked == id) {
                    lease.unanswered_requests.remove(answered);
                }
            }),
        }
        answer
    }

    /// Acquires the conversation again for a turn that continues after its end.
    pub(crate) async fn reacquire(&self, hold: &Hold) -> Result<()> {
        if !hold.relock() {
            return Err(busy());
        }
        if let (Some(leases), Some(token)) = (self.store.leases(), self.token()) {
            let _renewing = self.renewing.lock().await;
            self.renew(leases, token).await.map_err(Error::from)?;
            self.released.store(false, Ordering::Relaxed);
            self.registry.note_lease(&self.key, token);
        }
        Ok(())
    }

    async fn renew(&self, leases: &dyn Leases, token: FencingToken) -> Result<(), StoreError> {
        self.unanswered_renewals.fetch_add(1, Ordering::Relaxed);
        let answer = change_in_time(leases.renew(&self.key, token, self.ttl)).await;
        if !matches!(answer, Err(StoreError::OutcomeUnknown { .. })) {
            self.unanswered_renewals.fetch_sub(1, Ordering::Relaxed);
        }
        answer
    }

    /// Releases the lease and the lock, so that other turns may begin.
    pub(crate) async fn release_all(&self, hold: &Hold) {
        if !hold.is_lost() {
            self.release().await;
        }
        hold.release();
    }

    /// Releases the turn's lease in the store.
    pub(crate) async fn release(&self) {
        let (Some(leases), Some(token)) = (self.store.leases(), self.token()) else { return };
        self.released.store(true, Ordering::Relaxed);
        let _renewing = self.renewing.lock().await;
        // The lock may have been that of a turn that continued.
        self.released.store(true, Ordering::Relaxed);
        match change_in_time(leases.release(&self.key, token)).await {
            // A late renewal would take the lease again, so the registry keeps the token.
            Ok(()) if self.unanswered_renewals.load(Ordering::Relaxed) > 0 => {}
            Ok(()) => self.registry.note_released(&self.key, token),
            // The lease expires, or the next turn of this process takes it over.
            Err(error) => {
                tracing::debug!(conversation = %self.key, %error, "a lease could not be released");
            }
        }
    }

    /// Checks whether the turn's lease is still to be released.
    pub(crate) fn is_held(&self) -> bool {
        let token = self.token();
        token.is_some() && self.registry.lease(&self.key).token == token
    }

    /// Runs beside the turn and renews its lease. Returns an error that ends the turn when it is fenced.
    pub(crate) async fn keep(self: Arc<Self>) -> Error {
        let Some(leases) = self.store.leases() else { return pending().await };
        let pause = self.ttl / 3;
        loop {
            sleep(pause).await;
            let _renewing = self.renewing.lock().await;
            let is_released = self.released.load(Ordering::Relaxed);
            let Some(token) = self.token().filter(|_| !is_released) else { continue };
            // A store that does not answer now may answer before the lease expires.
            let answer = timeout(pause / 2, self.renew(leases, token)).await;
            if let Ok(Err(lost @ StoreError::Fenced)) = answer
                && !self.released.load(Ordering::Relaxed)
            {
                return lost.into();
            }
        }
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::ConversationBusy,
        "another turn of this conversation is running or waiting; wait for its end or cancel it, then ask again",
    )
}

#[cfg(test)]
mod tests;
