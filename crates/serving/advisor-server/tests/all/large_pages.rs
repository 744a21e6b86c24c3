//! Pages of conversations that take much memory or time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};
use advisor_testkit::ScriptedModel;
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::{Batch, BatchKey, ConversationStore, EntryKind, NewEntry, Version};
use futures::future::join_all;
use serde_json::Value;

use crate::long_conversations::Noted;
use crate::setting::{LIMIT, Setting, json_of, setting_over, text};

/// The routes that read a page of a conversation.
const READS: [&str; 3] =
    ["/api/conversations/c1?view=page&limit=100", "/api/conversations/c1?limit=100", "/api/ui/c1?limit=100"];

/// A wide header and many short rows, each of which a parser completes: 4.7 kB that were 6.6 MB of elements.
fn wide_table() -> String {
    format!("|{}\n|{}\n{}", "a|".repeat(300), "-|".repeat(300), "a\n".repeat(1_750))
}

/// Stores turns with this answer.
async fn fill(store: &InMemoryStore, turns: u64, answer: &str) {
    let key = ConversationKey::new("c1").unwrap();
    for number in 0..turns {
        let turn = TurnId::new(&format!("t{number}")).unwrap();
        let kinds = [
            Message::user("Draw a table.").into(),
            Message::assistant(answer).into(),
            EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)),
        ];
        let entries = kinds.map(|kind| NewEntry::new(turn.clone(), kind)).to_vec();
        let batch = Batch::new(BatchKey::for_input(turn), entries);
        store.append(&key, Version(number * 3), batch).await.unwrap();
    }
}

async fn with_turns(turns: u64, answer: &str) -> Setting {
    let store = InMemoryStore::new();
    fill(&store, turns, answer).await;
    setting_over(store, ScriptedModel::new([]))
}

fn with_page_bytes(setting: Setting, bytes: usize) -> Setting {
    setting.limited(|limits| limits.page_bytes = bytes)
}

#[tokio::test]
async fn law_r1_wide_tables_cost_a_multiple_of_their_text_on_every_route() {
    let setting = with_turns(10, &wide_table()).await;
    for path in READS {
        let response = setting.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let (read, sent) = (text(response).await.len(), 10 * wide_table().len());
        assert!(read > sent && read <= 20 * sent, "{path}: {read} bytes of {sent}");
    }
}

/// A page is at most its bound, whatever its elements are, and all pages together have each turn.
#[tokio::test]
async fn law_r1_page_is_bounded_with_its_elements() {
    const BOUND: usize = 20_000;
    let list = "- *a*\n".repeat(100);
    let setting = with_page_bytes(with_turns(30, &list).await, BOUND);
    let (mut query, mut turns) = (String::new(), Vec::new());
    loop {
        let body =
            text(setting.get(&format!("/api/conversations/c1?view=page&limit=100{query}")).await).await;
        assert!(body.len() <= BOUND + 200, "{}", body.len());
        let page: Value = serde_json::from_str(&body).unwrap();
        let messages = page["messages"].as_array().unwrap();
        let (asked, answered) = (&messages[0], &messages[1]);
        assert!(!answered["parts"][0]["nodes"].as_array().unwrap().is_empty(), "{answered}");
        assert_eq!(asked["text"], "Draw a table.");
        turns.extend(
            messages.iter().rev().step_by(2).map(|message| message["turn"].as_str().unwrap().to_owned()),
        );
        match page["before"].as_str() {
            Some(before) => query = format!("&before={before}"),
            None => break,
        }
    }
    let expected: Vec<_> = (0..30).rev().map(|number| format!("t{number}")).collect();
    assert_eq!(turns, expected);
}

#[tokio::test]
async fn law_r1_newest_turn_without_room_has_no_elements() {
    let list = "- *a*\n".repeat(100);
    let setting = with_page_bytes(with_turns(2, &list).await, 2_000);
    let page = json_of(setting.get("/api/conversations/c1?view=page").await).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 2, "the turn before is on another page");
    assert_eq!(page["messages"][1]["text"], list);
    assert_eq!(page["messages"][1]["parts"][0]["nodes"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn law_r1_parallel_reads_of_pages_wait_for_one_another() {
    for path in READS {
        let store = Noted::default();
        let counts = Arc::clone(&store.counts);
        fill(&store.store, 20, "Hi.").await;
        let setting = setting_over(store, ScriptedModel::new([]));
        let read = join_all((0..30).map(|_| async { text(setting.get(path).await).await.len() })).await;
        assert!(read.iter().all(|length| *length == read[0]), "{path}: {read:?}");
        let most = counts.most_loading.load(Ordering::Relaxed);
        assert!((1..=4).contains(&most), "{path}: {most} at once");
    }
}

#[tokio::test]
async fn law_r1_page_of_large_turns_is_read_no_further() {
    for path in ["/api/conversations/c1?limit=100", "/api/ui/c1?limit=100"] {
        let store = Noted::default();
        let counts = Arc::clone(&store.counts);
        fill(&store.store, 100, &"word ".repeat(1_000)).await;
        let setting = with_page_bytes(setting_over(store, ScriptedModel::new([])), 20_000);
        let page = json_of(setting.get(path).await).await;
        assert!(page["before"].is_string());
        assert_eq!(*counts.loads.lock().unwrap(), [8 * 3], "{path}");
    }
}

#[test]
fn pages_are_made_off_the_async_threads() {
    for path in READS {
        off_the_async_threads("Draw a table.", with_turns(10, &wide_table()), async |setting| {
            text(setting.get(path).await).await
        });
    }
}

/// The only blocking thread of the runtime is taken, and the async thread answers while ten requests wait for it. Each answer
/// has the text `wanted` then.
#[allow(clippy::needless_pass_by_value, reason = "a closure of the caller")]
pub(crate) fn off_the_async_threads(
    wanted: &str,
    setting: impl Future<Output = Setting>,
    ask: impl AsyncFn(&Setting) -> String,
) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let setting = setting.await;
        let (release, released) = std::sync::mpsc::channel::<()>();
        let taken = tokio::task::spawn_blocking(move || released.recv());
        let mut answers = std::pin::pin!(join_all((0..10).map(|_| ask(&setting))));
        let bystander = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            setting.get("/healthz").await.status()
        };
        tokio::select! {
            biased;
            _ = &mut answers => panic!("the work was done on the async thread"),
            status = bystander => assert_eq!(status, StatusCode::OK),
        }
        release.send(()).unwrap();
        let answers = tokio::time::timeout(LIMIT, answers).await.unwrap();
        assert!(answers.iter().all(|answer| answer.contains(wanted)), "{answers:?}");
        taken.await.unwrap().unwrap();
    });
}
