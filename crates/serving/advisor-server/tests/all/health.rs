//! Whether the process runs, and whether turns can begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::{ConversationKey, Message, TurnId, async_trait};
use advisor_testkit::{Answer, Around, Asked, ScriptedModel, StoreAround, Work};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use chat_memory_advisor::store::{
    Batch, BatchKey, ConversationStore, InMemoryStore, NewEntry, StoreError, Version,
};
use tokio::time::{Instant, advance};

use crate::setting::{Setting, json_of, refused, setting, setting_over, with_tokens};

#[tokio::test]
async fn running_server_is_alive_and_ready_for_anyone() {
    let setting = with_tokens(setting([]));
    for (path, status) in [("/healthz", "alive"), ("/readyz", "ready")] {
        // A probe names the address of the machine, and has no token.
        let probe = Request::get(path).header("host", "10.0.0.7:8080").body(Body::empty()).unwrap();
        let response = setting.send(probe).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(json_of(response).await["status"], status);
    }
}

/// A store that answers as the name says.
#[derive(Debug, Clone, Copy)]
enum Probed {
    Failing,
    Silent,
    /// It never answers what is read, and counts it.
    Unread(&'static AtomicUsize),
    Panicking,
    /// Every second list fails.
    Counting(&'static AtomicUsize),
}

#[async_trait]
impl Around for Probed {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let failed = || StoreError::Unavailable { retryable: true, source: Some("canary".into()) };
        match (self, asked) {
            (Self::Silent, Asked::List | Asked::Delete) => std::future::pending().await,
            (Self::Unread(reads), Asked::Read) => {
                reads.fetch_add(1, Ordering::Relaxed);
                std::future::pending().await
            }
            (Self::Failing, Asked::List) => Err(failed()),
            (Self::Panicking, Asked::List | Asked::Delete) => panic!("canary"),
            (Self::Counting(lists), Asked::List) if lists.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
                Err(failed())
            }
            _ => work.await,
        }
    }
}

fn over(probed: Probed) -> Setting {
    let store = StoreAround::with(Arc::new(InMemoryStore::new()), probed);
    setting_over(store, ScriptedModel::new([Answer::from_text("Hi.")]))
}

#[tokio::test(start_paused = true)]
async fn server_without_its_store_is_alive_and_not_ready() {
    for store in [Probed::Failing, Probed::Silent] {
        let setting = over(store);
        assert_eq!(setting.get("/healthz").await.status(), StatusCode::OK);
        let since = Instant::now();
        let response = setting.get("/readyz").await;
        assert_eq!(refused(response, StatusCode::SERVICE_UNAVAILABLE).await, "store", "{store:?}");
        assert!(since.elapsed().as_secs() < 5, "a probe waits no longer");
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_request_waits_half_a_minute_for_a_silent_store() {
    let setting = over(Probed::Silent);
    for (method, path) in [("GET", "/api/conversations"), ("DELETE", "/api/conversations/c")] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let since = Instant::now();
        let response = setting.send(request);
        let response = tokio::time::timeout(Duration::from_secs(60), response).await.expect("it is answered");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
        assert_eq!(since.elapsed().as_secs(), 30, "{method} {path}");
    }
}

/// All titles of a list wait no longer, and those that are missing are ids. Eight are read at once, and none later.
#[tokio::test(start_paused = true)]
async fn law_t3_titles_wait_half_a_minute_for_a_silent_store() {
    let store = InMemoryStore::new();
    for id in 0..100 {
        let (key, turn) = (ConversationKey::new(&id.to_string()).unwrap(), TurnId::new("t").unwrap());
        let said = vec![NewEntry::new(turn.clone(), Message::user("Hi.").into())];
        store.append(&key, Version::EMPTY, Batch::new(BatchKey::for_input(turn), said)).await.unwrap();
    }
    static READS: AtomicUsize = AtomicUsize::new(0);
    let store = StoreAround::with(Arc::new(store), Probed::Unread(&READS));
    let (setting, since) = (setting_over(store, ScriptedModel::new([])), Instant::now());
    let listed = json_of(setting.get("/api/conversations?view=page").await).await;
    let listed = listed["conversations"].as_array().unwrap();
    assert_eq!((listed.len(), since.elapsed().as_secs()), (100, 30));
    assert!(listed.iter().all(|conversation| conversation["id"] == conversation["title"]), "{listed:?}");
    assert_eq!(READS.load(Ordering::Relaxed), 8);
}

/// A panic in a store costs one request, and the client learns nothing of its text.
#[tokio::test]
async fn panic_is_an_internal_error() {
    let setting = over(Probed::Panicking);
    let (get, delete) = (Method::GET, Method::DELETE);
    for (method, path) in
        [(&get, "/readyz"), (&get, "/api/conversations"), (&delete, "/api/conversations/c1")]
    {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let response = setting.send(request).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let body = json_of(response).await;
        assert_eq!(body["error"]["code"], "internal", "{path}");
        assert!(body["error"]["request_id"].is_string() && !body.to_string().contains("canary"), "{body}");
    }
    assert_eq!(setting.get("/healthz").await.status(), StatusCode::OK);
}

/// Anyone may ask, so requests do not reach the store one by one.
#[tokio::test(start_paused = true)]
async fn store_is_asked_at_most_once_a_second() {
    static LISTS: AtomicUsize = AtomicUsize::new(0);
    let setting = over(Probed::Counting(&LISTS));
    for (lists, status) in [(1, StatusCode::OK), (2, StatusCode::SERVICE_UNAVAILABLE), (3, StatusCode::OK)] {
        for _ in 0..9 {
            assert_eq!(setting.get("/readyz").await.status(), status, "{lists}");
            advance(Duration::from_millis(100)).await;
        }
        assert_eq!(LISTS.load(Ordering::Relaxed), lists);
        advance(Duration::from_millis(100)).await;
    }
}
