//! Tests of `turn::lease_keeper`.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use advisor_core::{ChatRequest, ConversationKey, ErrorKind, Message, Turn, TurnId, async_trait};
use conversation_store::{Batch, ConversationStore, Entry, EntryId, InMemoryStore, Page, ReadRange};
use conversation_store::{Snapshot, Version};

use tokio::time::Instant;

use super::*;
use crate::settings::Settings;
use crate::test_logs::turn;
use crate::turn::TurnMemory;

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
    ) -> Result<FencingToken, StoreError> {
        self.asked.lock().unwrap().push((Instant::now(), ttl));
        self.takeovers.lock().unwrap().push(takeover_from);
        self.grants.lock().unwrap().pop_front().expect("no further request")
    }

    async fn acquire_in_turn(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken, StoreError> {
        self.acquire(key, turn, ttl, takeover_from).await
    }

    async fn renew(&self, _: &ConversationKey, _: FencingToken, ttl: Duration) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push((Instant::now(), ttl));
        let may_be_silent = |left: usize| left.checked_sub(1);
        if self.silent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may_be_silent).is_ok() {
            return pending().await;
        }
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
    memory: Arc<TurnMemoryState>,
}

impl Scripted {
    fn new(grants: impl IntoIterator<Item = Result<u64, StoreError>>) -> Self {
        let grants = grants.into_iter().map(|granted| granted.map(FencingToken::new)).collect();
        let store = Arc::new(ScriptedLeases { grants: Mutex::new(grants), ..ScriptedLeases::default() });
        let settings = Settings::new(Arc::<ScriptedLeases>::clone(&store));
        let request = ChatRequest::new(Message::user("u")).with_turn(Turn::new(turn("t")));
        let memory = TurnMemory::new(&settings, &request, ConversationKey::new("c").unwrap()).0;
        Self { store, memory }
    }

    fn with_renewals(self, renewals: impl IntoIterator<Item = Result<(), StoreError>>) -> Self {
        *self.store.renewals.lock().unwrap() = renewals.into_iter().collect();
        self
    }

    /// Requests the lease, and returns the outcome and the leases that the requests took over.
    async fn acquire(&self) -> (Result<(), ErrorKind>, Vec<Option<u64>>) {
        let acquired = self.memory.acquire_lease(&*self.store, Some(OnBusy::Reject)).await;
        let takeovers = self.store.takeovers.lock().unwrap().clone();
        let takeovers = takeovers.into_iter().map(|token| token.map(FencingToken::as_u64));
        (acquired.map_err(|error| error.kind()), takeovers.collect())
    }

    fn known_token(&self) -> Option<FencingToken> {
        self.memory.registry.leases.token(&self.memory.key)
    }
}

fn unknown<T>() -> Result<T, StoreError> {
    Err(StoreError::outcome_unknown("the answer is lost"))
}

fn locked(name: &str, token: u64) -> Result<u64, StoreError> {
    let (turn, token) = (turn(name), FencingToken::new(token));
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
        scripted.memory.registry.leases.note_request(&scripted.memory.key, &turn(name));
    }
    assert_eq!(scripted.acquire().await, (Ok(()), vec![None, Some(1), Some(2)]));
}

#[tokio::test]
async fn lease_of_turn_elsewhere_is_not_taken_over() {
    let scripted = Scripted::new([locked("a", 1), locked("a", 2)]);
    scripted.memory.registry.leases.note_request(&scripted.memory.key, &turn("a"));
    let expected = (Err(ErrorKind::ConversationBusy), vec![None, Some(1)]);
    assert_eq!(scripted.acquire().await, expected, "it has the lease again, from elsewhere");
}

#[tokio::test]
async fn full_store_is_asked_once_more() {
    let full = || Err(StoreError::Full { limit: 1 });
    assert_eq!(Scripted::new([full(), Ok(1)]).acquire().await, (Ok(()), vec![None, None]));
    let (acquired, requests) = Scripted::new([full(), full()]).acquire().await;
    assert!(acquired.is_err() && requests.len() == 2, "{acquired:?}, {requests:?}");
}

#[tokio::test]
async fn law_k4_released_lease_stays_known_while_renewal_is_unanswered() {
    let scripted = Scripted::new([Ok(1)]).with_renewals([Ok(()), unknown()]);
    let (memory, token) = (&scripted.memory, FencingToken::new(1));
    assert!(!memory.holds_lease(), "it has none");
    scripted.acquire().await.0.unwrap();
    assert!(memory.holds_lease());
    memory.renew(&*scripted.store, token).await.unwrap();
    memory.release_lease().await;
    assert!(!memory.holds_lease() && scripted.known_token().is_none());

    memory.registry.note_lease(&memory.key, token);
    memory.renew(&*scripted.store, token).await.unwrap_err();
    memory.release_lease().await;
    assert_eq!(scripted.known_token(), Some(token));
    memory.registry.note_lease(&memory.key, FencingToken::new(2));
    assert!(!memory.holds_lease(), "a later turn has another one");
}

/// A lease that is renewed late, or for a shorter time, is lost in the middle of a turn.
#[tokio::test(start_paused = true)]
async fn each_request_and_renewal_is_for_the_whole_time_and_comes_before_its_end() {
    for silent in [0, 1] {
        let renewals = [Ok(()), unknown(), Ok(()), Err(StoreError::Fenced)];
        let scripted = Scripted::new([Ok(1)]).with_renewals(renewals);
        let (memory, ttl) = (&scripted.memory, scripted.memory.lease_ttl);
        let guard = memory.acquire(Some(OnBusy::Reject)).await.unwrap();
        scripted.store.silent.store(silent, Ordering::Relaxed);
        let lost = Arc::clone(memory).keep_lease().await;
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
        guard.release();
    }
}

/// A turn that continues after its end renews the lease for the whole time, too. Nothing renews it in between.
#[tokio::test(start_paused = true)]
async fn a_turn_that_continues_renews_its_lease_for_the_whole_time() {
    let scripted = Scripted::new([Ok(1)]).with_renewals([Ok(()), Err(StoreError::Fenced)]);
    let (memory, ttl) = (&scripted.memory, scripted.memory.lease_ttl);
    let guard = memory.acquire(Some(OnBusy::Reject)).await.unwrap();
    memory.release(&guard).await;
    let kept = timeout(10 * ttl, Arc::clone(memory).keep_lease()).await;
    assert!(
        kept.is_err() && scripted.store.asked.lock().unwrap().len() == 1,
        "a released lease is left alone"
    );
    memory.reacquire(&guard).await.unwrap();
    let lost = timeout(ttl, Arc::clone(memory).keep_lease()).await;
    assert!(lost.is_ok(), "the lease is kept again");
    assert!(scripted.store.asked.lock().unwrap().iter().all(|(_, time)| *time == ttl));
}
