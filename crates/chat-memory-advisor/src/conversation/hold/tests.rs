//! Tests of `conversation::hold`.

use std::sync::atomic::AtomicUsize;

use advisor_core::async_trait;
use conversation_store::{Batch, Entry, EntryId, InMemoryStore, Page, ReadRange, Snapshot, Version};
use futures::{FutureExt, poll};
use tokio::time::Instant;

use super::*;
use crate::tests::turn;

/// A conversation of this process.
struct Setting {
    registry: Arc<Registry>,
    store: Arc<dyn ConversationStore>,
}

fn setting() -> Setting {
    Setting { registry: Arc::default(), store: Arc::new(InMemoryStore::new()) }
}

impl Setting {
    /// Returns the lease of a turn that runs elsewhere.
    fn lease(&self, name: &str) -> Arc<TurnLease> {
        let (store, key) = (Arc::clone(&self.store), ConversationKey::new("c").unwrap());
        TurnLease::new(store, &self.registry, key, &Turn::new(turn(name)), Duration::from_secs(30))
    }

    fn try_lock(&self, name: &str) -> Result<Hold, Busy> {
        self.lease(name).try_lock()
    }
}

fn is_interrupted(lease: &TurnLease) -> bool {
    lease.interrupted.load(Ordering::Relaxed)
}

#[tokio::test]
async fn waiting_turns_begin_in_order_without_trace() {
    let setting = setting();
    let running = setting.try_lock("a").unwrap();
    let [b, c, d] = ["b", "c", "d"].map(|name| setting.lease(name));
    let mut second = Box::pin(b.lock());
    let mut dropped = Box::pin(c.lock());
    let mut last = Box::pin(d.lock());
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
    assert_eq!(setting.registry.conversations.len(), 0);
    let running = setting.try_lock("a").unwrap();
    let mut given_up = Box::pin(b.lock());
    assert!(poll!(&mut given_up).is_pending());
    drop(running);
    drop(given_up);
    assert_eq!(setting.registry.conversations.len(), 0, "also if the one that was woken gives up");
}

#[tokio::test]
async fn same_turn_is_recognised_while_its_woken_run_waits() {
    let setting = setting();
    let running = setting.try_lock("a").unwrap();
    let a = setting.lease("a");
    let mut second = Box::pin(a.lock());
    assert!(poll!(&mut second).is_pending());
    drop(running);
    assert_eq!(setting.try_lock("a").err(), Some(Busy::SameTurn));
    let mut third = Box::pin(a.lock());
    assert!(poll!(&mut third).is_pending());
    drop(second.now_or_never().unwrap());
    drop(third.now_or_never().unwrap());
    assert_eq!(setting.registry.conversations.len(), 0);
}

#[test]
fn a_turn_goes_on_unless_another_has_begun() {
    let setting = setting();
    let first = setting.try_lock("a").unwrap();
    first.release();
    assert!(first.relock());
    assert!(setting.try_lock("b").is_err());
    first.release();
    assert!(!first.is_lost());
    // The same turn, submitted again, is not the same claim.
    let _second = setting.try_lock("a").unwrap();
    assert!(!first.relock() && first.is_lost());
    drop(first);
    assert!(setting.try_lock("c").is_err(), "a claim ends nothing but itself");
}

#[tokio::test]
async fn interrupting_turn_waits_for_its_own_run() {
    let setting = setting();
    let a = setting.lease("a");
    let running = a.try_lock().unwrap();
    let again = setting.lease("a");
    let mut again = Box::pin(again.lock_ahead());
    assert!(poll!(&mut again).is_pending());
    assert!(!is_interrupted(&a));
    drop(running);
    assert!(again.now_or_never().is_some());
    assert_eq!(setting.registry.conversations.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn interrupting_turn_passes_waiting_turns() {
    let setting = setting();
    let running = setting.try_lock("a").unwrap();
    let [b, c] = ["b", "c"].map(|name| setting.lease(name));
    let mut waiting = Box::pin(b.lock());
    assert!(poll!(&mut waiting).is_pending());
    let mut interrupting = Box::pin(c.lock_ahead());
    assert!(poll!(&mut interrupting).is_pending());
    drop(running);
    assert!(poll!(&mut waiting).is_pending(), "although it is polled first");
    let interrupting = interrupting.now_or_never().unwrap();
    assert!(poll!(&mut waiting).is_pending());
    drop(interrupting);
    let waiting = waiting.now_or_never().unwrap();
    let mut given_up = Box::pin(c.lock_ahead());
    assert!(poll!(&mut given_up).is_pending());
    let mut last = Box::pin(b.lock());
    drop(waiting);
    assert!(poll!(&mut last).is_pending(), "the one that interrupts comes first");
    drop(given_up);
    assert!(last.now_or_never().is_some(), "and wakes the next one when it gives up");
    assert_eq!(setting.registry.conversations.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn unpolled_interrupting_turn_delays_no_other() {
    let setting = setting();
    let running = setting.try_lock("a").unwrap();
    let [b, c] = ["b", "c"].map(|name| setting.lease(name));
    let mut unpolled = Box::pin(b.lock_ahead());
    assert!(poll!(&mut unpolled).is_pending());
    let begun = Instant::now();
    let last = c.lock_ahead().await;
    assert_eq!(begun.elapsed(), GRACE, "the first turn is evicted after its grace");
    assert!(running.is_lost());
    drop((last, unpolled));
    drop(running);
    assert_eq!(setting.registry.conversations.len(), 0);
}

/// A store whose leases answer as a test says.
#[derive(Default)]
struct ScriptedLeases {
    conversations: InMemoryStore,
    grants: Mutex<VecDeque<Result<FencingToken, StoreError>>>,
    renewals: Mutex<VecDeque<Result<(), StoreError>>>,
    /// The number of renewals that are never answered, before the scripted ones.
    silent: AtomicUsize,
    /// When the lease was asked for, and for how long.
    asked: Mutex<Vec<(Instant, Duration)>>,
    /// The leases that the requests take over.
    takeovers: Mutex<Vec<Option<FencingToken>>>,
}

#[async_trait]
impl Leases for ScriptedLeases {
    async fn acquire(
        &self,
        _: &ConversationKey,
        _: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        _: bool,
    ) -> Result<FencingToken, StoreError> {
        self.asked.lock().unwrap().push((Instant::now(), ttl));
        self.takeovers.lock().unwrap().push(takeover_from);
        self.grants.lock().unwrap().pop_front().expect("no further request")
    }

    async fn renew(&self, _: &ConversationKey, _: FencingToken, ttl: Duration) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push((Instant::now(), ttl));
        let may_be_silent = |left: usize| left.checked_sub(1);
        if self.silent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may_be_silent).is_ok() {
            return pending().await;
        }
        tokio::task::yield_now().await;
        self.renewals.lock().unwrap().pop_front().expect("no further renewal")
    }

    async fn release(&self, _: &ConversationKey, _: FencingToken) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl ConversationStore for ScriptedLeases {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        self.conversations.load(key, range).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        most: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.conversations.read(key, after, most).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version, StoreError> {
        self.conversations.append(key, at, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.conversations.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.conversations.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }
}

/// A turn `t` over a store with scripted leases.
struct Scripted {
    store: Arc<ScriptedLeases>,
    setting: Setting,
    lease: Arc<TurnLease>,
}

impl Scripted {
    fn new(grants: impl IntoIterator<Item = Result<u64, StoreError>>) -> Self {
        let grants = grants.into_iter().map(|granted| granted.map(FencingToken)).collect();
        let store = Arc::new(ScriptedLeases { grants: Mutex::new(grants), ..ScriptedLeases::default() });
        let setting = Setting { store: Arc::<ScriptedLeases>::clone(&store), ..setting() };
        let lease = setting.lease("t");
        Self { store, setting, lease }
    }

    fn with_renewals(self, renewals: impl IntoIterator<Item = Result<(), StoreError>>) -> Self {
        *self.store.renewals.lock().unwrap() = renewals.into_iter().collect();
        self
    }

    /// Requests the lease, and returns the outcome and the leases that the requests took over.
    async fn acquire(&self) -> (Result<(), ErrorKind>, Vec<Option<u64>>) {
        let acquired = self.lease.acquire_lease(&*self.store, Some(OnBusy::Reject)).await;
        let takeovers = self.store.takeovers.lock().unwrap().clone();
        let takeovers = takeovers.into_iter().map(|token| token.map(|token| token.0));
        (acquired.map_err(|error| error.kind()), takeovers.collect())
    }

    fn note_request(&self, name: &str) {
        let note = |lease: &mut HeldLease| lease.unanswered_requests.push(turn(name));
        self.setting.registry.change_lease(&self.lease.key, note);
    }

    fn known_token(&self) -> Option<FencingToken> {
        self.setting.registry.lease(&self.lease.key).token
    }
}

fn unknown<T>() -> Result<T, StoreError> {
    Err(StoreError::outcome_unknown("the answer is lost"))
}

fn locked(name: &str, token: u64) -> Result<u64, StoreError> {
    let (turn, token) = (turn(name), FencingToken(token));
    Err(StoreError::Locked { turn, token, remaining: Duration::from_secs(30) })
}

#[tokio::test]
async fn law_k4_unknown_request_is_repeated_once() {
    let scripted = Scripted::new([unknown(), locked("t", 7), Ok(8)]);
    assert_eq!(scripted.acquire().await, (Ok(()), vec![None, None, Some(7)]), "the store had granted it");
    let scripted = Scripted::new([unknown(), unknown()]);
    assert_eq!(scripted.acquire().await, (Err(ErrorKind::Store), vec![None, None]));
}

#[tokio::test]
async fn law_k4_leases_of_all_unanswered_requests_are_taken_over() {
    let scripted = Scripted::new([locked("a", 1), locked("b", 2), Ok(3)]);
    for name in ["a", "b"] {
        scripted.note_request(name);
    }
    assert_eq!(scripted.acquire().await, (Ok(()), vec![None, Some(1), Some(2)]));
}

#[tokio::test]
async fn lease_of_turn_elsewhere_is_not_taken_over() {
    let scripted = Scripted::new([locked("a", 1), locked("a", 2)]);
    scripted.note_request("a");
    let expected = (Err(ErrorKind::ConversationBusy), vec![None, Some(1)]);
    assert_eq!(scripted.acquire().await, expected, "it has the lease again, from elsewhere");
}

#[tokio::test]
async fn law_k4_released_lease_stays_known_while_renewal_is_unanswered() {
    let scripted = Scripted::new([Ok(1)]).with_renewals([Ok(()), unknown()]);
    let (lease, token) = (&scripted.lease, FencingToken(1));
    assert!(!lease.is_held(), "it has none");
    scripted.acquire().await.0.unwrap();
    assert!(lease.is_held());
    lease.renew(&*scripted.store, token).await.unwrap();
    lease.release().await;
    assert!(!lease.is_held() && scripted.known_token().is_none());

    lease.registry.note_lease(&lease.key, token);
    lease.renew(&*scripted.store, token).await.unwrap_err();
    lease.release().await;
    assert_eq!(scripted.known_token(), Some(token));
    lease.registry.note_lease(&lease.key, FencingToken(2));
    assert!(!lease.is_held(), "a later turn has another one");
}

/// A lease that is renewed late, or for a shorter time, is lost in the middle of a turn.
#[tokio::test(start_paused = true)]
async fn each_request_and_renewal_is_for_the_whole_time_and_comes_before_its_end() {
    for silent in [0, 1] {
        let renewals = [Ok(()), unknown(), Ok(()), Err(StoreError::Fenced)];
        let scripted = Scripted::new([Ok(1)]).with_renewals(renewals);
        let (lease, ttl) = (&scripted.lease, scripted.lease.ttl);
        let hold = lease.acquire(Some(OnBusy::Reject)).await.unwrap();
        scripted.store.silent.store(silent, Ordering::Relaxed);
        let lost = timeout(10 * ttl, Arc::clone(lease).keep()).await.expect("a silent renewal is given up");
        assert_eq!(lost.kind(), Error::from(StoreError::Fenced).kind());
        let asked = scripted.store.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 5 + silent);
        assert!(asked.iter().all(|(_, time)| *time == ttl), "{asked:?}");
        let pauses: Vec<_> = asked.iter().zip(&asked[1..]).map(|((at, _), (next, _))| *next - *at).collect();
        assert!(pauses.iter().all(|pause| *pause <= ttl / 2), "two of them fit before the end: {pauses:?}");
        assert!(
            pauses.iter().all(|pause| *pause >= ttl / 4),
            "a store is not asked all the time: {pauses:?}"
        );
        hold.release();
    }
}

/// A process that slept at its last append renews its lease and releases it when it wakes up.
#[tokio::test(start_paused = true)]
async fn renewal_that_is_refused_while_the_lease_is_released_ends_no_turn() {
    let scripted = Scripted::new([Ok(1)]).with_renewals([Err(StoreError::Fenced), Err(StoreError::Fenced)]);
    let (lease, ttl) = (&scripted.lease, scripted.lease.ttl);
    let hold = lease.acquire(Some(OnBusy::Reject)).await.unwrap();
    let mut kept = Box::pin(Arc::clone(lease).keep());
    assert!(poll!(&mut kept).is_pending());
    tokio::time::advance(ttl / 2).await;
    assert!(poll!(&mut kept).is_pending(), "it is renewed");
    let mut released = Box::pin(lease.release_all(&hold));
    assert!(poll!(&mut released).is_pending(), "it waits for the renewal");
    assert!(poll!(&mut kept).is_pending(), "its end needs no lease");
    released.await;
    assert!(lease.reacquire(&hold).await.is_err(), "a turn that continues needs it");
}

/// A turn that continues after its end renews the lease for the whole time, too. Nothing renews it in between.
#[tokio::test(start_paused = true)]
async fn a_turn_that_continues_renews_its_lease_for_the_whole_time() {
    let scripted = Scripted::new([Ok(1)]).with_renewals([Ok(()), Err(StoreError::Fenced)]);
    let (lease, ttl) = (&scripted.lease, scripted.lease.ttl);
    let hold = lease.acquire(Some(OnBusy::Reject)).await.unwrap();
    lease.release_all(&hold).await;
    let kept = timeout(10 * ttl, Arc::clone(lease).keep()).await;
    assert!(
        kept.is_err() && scripted.store.asked.lock().unwrap().len() == 1,
        "a released lease is left alone"
    );
    lease.reacquire(&hold).await.unwrap();
    let lost = timeout(ttl, Arc::clone(lease).keep()).await;
    assert!(lost.is_ok(), "the lease is kept again");
    assert!(scripted.store.asked.lock().unwrap().iter().all(|(_, time)| *time == ttl));
}
