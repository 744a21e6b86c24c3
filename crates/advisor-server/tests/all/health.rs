//! Whether the process runs, and whether turns can begin.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::{ChatClient, ConversationKey, async_trait};
use advisor_server::{ChatServer, Tokens};
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chat_memory_advisor::ChatMemoryAdvisor;
use chat_memory_advisor::store::{
    Batch, ConversationStore, Entry, EntryId, InMemoryStore, Page, ReadRange, Result, Snapshot, StoreError,
    Version,
};
use tokio::time::{Instant, advance};

use crate::setting::{Setting, json_of, refused, setting};

#[tokio::test]
async fn running_server_is_alive_and_ready_for_anyone() {
    let Setting { server, model } = setting([]);
    let setting =
        Setting { server: server.with_tokens(Tokens::new([("the-secret-of-ann", "ann")]).unwrap()), model };
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
    Panicking,
    Counting(&'static AtomicUsize),
}

#[async_trait]
impl ConversationStore for Probed {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        InMemoryStore::new().load(key, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        InMemoryStore::new().read(key, after, limit).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        InMemoryStore::new().append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        match self {
            Self::Silent => std::future::pending().await,
            _ => InMemoryStore::new().delete(key).await,
        }
    }

    async fn list(&self, _page: &Page) -> Result<Vec<ConversationKey>> {
        match self {
            Self::Failing => Err(StoreError::Unavailable { retryable: true, source: Some("canary".into()) }),
            Self::Silent => std::future::pending().await,
            Self::Panicking => panic!("canary"),
            Self::Counting(lists) => {
                // Every second list fails.
                match lists.fetch_add(1, Ordering::Relaxed) % 2 {
                    0 => Ok(Vec::new()),
                    _ => Err(StoreError::Unavailable { retryable: true, source: None }),
                }
            }
        }
    }
}

fn over(store: Probed) -> Setting {
    let memory = ChatMemoryAdvisor::new(store);
    let model = ScriptedModel::new([Answer::from_text("Hi.")]);
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
    Setting { server: ChatServer::new(client, memory), model }
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

/// A panic in a store costs one request, and the client learns nothing of its text.
#[tokio::test]
async fn panic_is_an_internal_error() {
    let setting = over(Probed::Panicking);
    for path in ["/readyz", "/api/conversations"] {
        let response = setting.get(path).await;
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
