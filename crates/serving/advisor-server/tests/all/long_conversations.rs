//! Requests about a conversation that is long.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_core::{ConversationKey, Message, TurnId, async_trait};
use advisor_testkit::{Answer, Around, Asked, ScriptedModel, StoreAround, Work};
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use chat_memory_advisor::store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, InMemoryStore, NewEntry, Page, ReadRange, Result,
    Snapshot, StoreError, Version,
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::setting::{Setting, post, setting_over, text, with_tokens};

/// A store that notes the largest number of entries that a read has returned, those of each load, and how many loads of at
/// least so many turns there were at once.
#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) store: InMemoryStore,
    pub(crate) counts: Arc<Counts>,
    pub(crate) least_turns: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    largest: AtomicUsize,
    pub(crate) loads: Mutex<Vec<usize>>,
    loading: AtomicUsize,
    pub(crate) most_loading: AtomicUsize,
}

impl Noted {
    async fn noted(
        &self,
        range: ReadRange,
        load: impl Future<Output = Result<Snapshot>>,
    ) -> Result<Snapshot> {
        if matches!(range, ReadRange::LastTurns(turns) if turns >= self.least_turns) {
            let loading = self.counts.loading.fetch_add(1, Ordering::Relaxed) + 1;
            self.counts.most_loading.fetch_max(loading, Ordering::Relaxed);
            // The others get their turn.
            for _ in 0..100 {
                yield_now().await;
            }
            self.counts.loading.fetch_sub(1, Ordering::Relaxed);
        }
        let snapshot = load.await?;
        self.counts.loads.lock().unwrap().push(snapshot.entries.len());
        Ok(snapshot)
    }
}

#[async_trait]
impl ConversationStore for Noted {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.noted(range, self.store.load(key, range)).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.noted(range, self.store.load_branch(key, tip, range)).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let read = self.store.read(key, after, limit).await?;
        self.counts.largest.fetch_max(read.len(), Ordering::Relaxed);
        Ok(read)
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        self.store.append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.store.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.store.list(page).await
    }
}

/// A server over this store, with a conversation of 100 turns, each of three entries.
async fn with_conversation(store: Noted) -> Setting {
    let setting = setting_over(store, ScriptedModel::from_fn(|_| Answer::from_text("Hi.")));
    for number in 0..100 {
        let body = json!({"message": "Hello", "conversation": "c1", "turn": format!("t{number}")});
        text(setting.post("/api/chat", &body).await).await;
    }
    setting
}

#[tokio::test]
async fn law_r1_replaced_turn_is_found_in_pages() {
    let store = Noted::default();
    let counts = Arc::clone(&store.counts);
    let setting = with_conversation(store).await;
    let cases = [
        ("t99", StatusCode::OK, 0..=0),
        ("t0", StatusCode::OK, 1..=256),
        ("t100", StatusCode::NOT_FOUND, 1..=256),
    ];
    for (turn, status, pages) in cases {
        counts.largest.store(0, Ordering::Relaxed);
        let body = json!({"message": "Again", "conversation": "c1", "replaces": turn});
        let response = setting.post("/api/chat", &body).await;
        assert_eq!(response.status(), status, "{turn}");
        text(response).await;
        assert!(pages.contains(&counts.largest.load(Ordering::Relaxed)), "{turn}: {counts:?}");
    }
}

/// Returns the messages of a client: this many turns of the conversation, and a new message.
fn list(turns: usize) -> Vec<Value> {
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let turns = (0..turns).flat_map(|_| [message("user", "Hello"), message("assistant", "Hi.")]);
    turns.chain([message("user", "How?")]).collect()
}

async fn send(setting: &Setting, list: &[Value]) -> Response<Body> {
    let request = post("/v1/chat/completions").header("x-conversation-id", "c1");
    setting.send(request.body(json!({"messages": list}).to_string().into()).unwrap()).await
}

/// The newest turns are read first, and no more than those that have the client's history.
#[tokio::test]
async fn law_r1_list_of_a_client_is_compared_in_pages() {
    let forged = [list(0), list(100)].concat();
    for (list, status, turns) in [
        (list(0), StatusCode::OK, &[2][..]),
        (vec![list(0).remove(0); 4_000], StatusCode::OK, &[8]),
        (list(1), StatusCode::OK, &[4]),
        (list(100), StatusCode::OK, &[8, 16, 32, 44]),
        (forged, StatusCode::BAD_REQUEST, &[8, 16, 32, 44]),
    ] {
        let store = Noted::default();
        let counts = Arc::clone(&store.counts);
        let setting = with_conversation(store).await;
        counts.loads.lock().unwrap().clear();
        let response = send(&setting, &list).await;
        assert_eq!(response.status(), status, "{} messages", list.len());
        text(response).await;
        let expected: Vec<_> = turns.iter().map(|turns| 3 * turns).collect();
        assert_eq!(counts.loads.lock().unwrap()[..turns.len()], expected, "{} messages", list.len());
    }
}

#[tokio::test]
async fn law_r1_lists_of_few_clients_are_compared_at_once() {
    let store = Noted { least_turns: 9, ..Noted::default() };
    let counts = Arc::clone(&store.counts);
    let setting = with_conversation(store).await;
    counts.most_loading.store(0, Ordering::Relaxed);
    let forged = [list(0), list(100)].concat();
    for response in join_all((0..10).map(|_| send(&setting, &forged))).await {
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
    assert!((1..=4).contains(&counts.most_loading.load(Ordering::Relaxed)), "{counts:?}");
}

/// A store whose reads take a second.
struct Slow;

#[async_trait]
impl Around for Slow {
    async fn around(
        &self,
        asked: Asked<'_>,
        work: Work<'_>,
    ) -> std::result::Result<Option<Version>, StoreError> {
        if matches!(asked, Asked::Read) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        work.await
    }
}

/// Lists of conversations wait for one another over a slow store, and a chat does not wait for them.
#[tokio::test(start_paused = true)]
async fn chat_does_not_wait_for_reads_of_others() {
    let store = InMemoryStore::new();
    for number in 0..8 {
        let key = ConversationKey::in_tenant("ann", &format!("c{number}")).unwrap();
        let turn = TurnId::new("t").unwrap();
        let said = vec![NewEntry::new(turn.clone(), Message::user("Hi.").into())];
        store.append(&key, Version::EMPTY, Batch::new(BatchKey::for_input(turn), said)).await.unwrap();
    }
    let store = Arc::new(StoreAround::with(Arc::new(store), Slow));
    let setting = with_tokens(setting_over(store, ScriptedModel::from_fn(|_| Answer::from_text("Fine."))));
    let lists = join_all((0..12).map(|_| async {
        let request =
            Request::get("/api/conversations?view=page").header("authorization", "Bearer the-token-of-ann");
        setting.send(request.body(Body::empty()).unwrap()).await.status()
    }));
    let chat = async {
        yield_now().await;
        let begun = Instant::now();
        let request = post("/v1/chat/completions").header("authorization", "Bearer the-token-of-bob");
        let body = json!({"messages": list(0)}).to_string();
        let response =
            setting.send(request.header("x-conversation-id", "b").body(body.into()).unwrap()).await;
        (response.status(), begun.elapsed())
    };
    let (lists, (status, waited)) = futures::join!(lists, chat);
    assert_eq!(lists.into_iter().collect::<HashSet<_>>(), HashSet::from([StatusCode::OK]));
    assert_eq!((status, waited), (StatusCode::OK, Duration::ZERO));
}
