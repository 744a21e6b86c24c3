//! Lists, reads and deletes conversations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_core::{ConversationKey, Error, ErrorKind};
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, Window};
use serde_json::{Value, json};

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::setting::{Setting, chain_over, json_of, refused, setting, text, texts_of};

#[tokio::test]
async fn conversation_is_read_and_deleted() {
    let call = Answer::new().reasoning("Hm.").call("t1", "weather", r#"{"city":"Oslo"}"#).done();
    let setting = setting([call, Answer::from_text("It is sunny.")]);
    text(setting.post("/api/chat", &json!({"message": "How is it?", "conversation": "c/1"})).await).await;
    let read = json_of(setting.get("/api/conversations/c%2F1").await).await;
    let turn = read["messages"][0]["turn"].as_str().unwrap();
    let expected = json!([
        {"role": "user", "text": "How is it?", "turn": turn},
        {
            "role": "assistant", "text": "", "reasoning": "Hm.",
            "calls": [{"id": "t1", "tool": "weather", "args": {"city": "Oslo"}}], "turn": turn,
        },
        {"role": "tool", "id": "t1", "tool": "weather", "result": "sunny", "is_error": false, "turn": turn},
        {"role": "assistant", "text": "It is sunny.", "reasoning": "", "calls": [], "turn": turn},
    ]);
    assert_eq!(read["messages"], expected);
    let delete = Request::delete("/api/conversations/c%2F1").body(Body::empty()).unwrap();
    assert_eq!(setting.send(delete).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(setting.get("/api/conversations/c%2F1").await.status(), StatusCode::NOT_FOUND);
}

/// The application keeps more of a conversation than memory does. If it cannot be deleted, the conversation stays.
#[tokio::test]
async fn application_deletes_first() {
    let setting = setting([Answer::from_text("Noted.")]);
    let kept = Arc::new(Mutex::new(vec![ConversationKey::new("c1").unwrap()]));
    let (notes, is_down) = (Arc::clone(&kept), Arc::new(AtomicBool::new(true)));
    let down = Arc::clone(&is_down);
    let work = move |key| {
        let (notes, is_down) = (Arc::clone(&notes), down.load(Ordering::Relaxed));
        async move {
            if is_down {
                return Err(Error::new(ErrorKind::Advisor, "the notes are not available"));
            }
            notes.lock().unwrap().retain(|kept| *kept != key);
            Ok(())
        }
    };
    let setting = setting.with(|server| server.with_deletion(work));
    text(setting.post("/api/chat", &json!({"message": "Hi", "conversation": "c1"})).await).await;
    let delete = || setting.send(Request::delete("/api/conversations/c1").body(Body::empty()).unwrap());
    let failed = refused(delete().await, StatusCode::INTERNAL_SERVER_ERROR).await;
    assert_eq!(setting.get("/api/conversations/c1").await.status(), StatusCode::OK, "{failed}");
    is_down.store(false, Ordering::Relaxed);
    assert_eq!(delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(setting.get("/api/conversations/c1").await.status(), StatusCode::NOT_FOUND);
    assert!(kept.lock().unwrap().is_empty());
}

/// A deletion that has begun goes on, so that nothing of the conversation is left in memory of the process.
#[tokio::test]
async fn deletion_ends_though_its_client_goes_away() {
    let setting = setting([Answer::from_text("Before."), Answer::from_text("After.")]);
    let (begun, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (starts, waits) = (Arc::clone(&begun), Arc::clone(&open));
    let setting = setting.with(|server| {
        server.with_deletion(move |_| {
            let waits = Arc::clone(&waits);
            starts.add_permits(1);
            async move { waits.acquire().await.map(drop).map_err(Error::advisor) }
        })
    });
    let ask = json!({"message": "Hi", "conversation": "c1", "turn": "t1"});
    text(setting.post("/api/chat", &ask).await).await;
    let delete = setting.send(Request::delete("/api/conversations/c1").body(Body::empty()).unwrap());
    tokio::select! {
        _ = delete => panic!("it waits for the application"),
        begun = begun.acquire() => drop(begun),
    }
    open.add_permits(1);
    let is_deleted = async {
        while setting.get("/api/conversations/c1").await.status() != StatusCode::NOT_FOUND {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), is_deleted).await.unwrap();
    assert!(
        text(setting.post("/api/chat", &ask).await).await.contains("After."),
        "the turn is forgotten, too"
    );
}

/// Returns the texts of the messages of a page, and its `before`.
async fn page(setting: &Setting, query: &str) -> (Vec<String>, Value) {
    let read = json_of(setting.get(&format!("/api/conversations/c1?{query}")).await).await;
    (texts_of(&read), read["before"].clone())
}

async fn ask(setting: &Setting, message: &str) {
    let body = json!({"message": message, "conversation": "c1", "turn": message});
    text(setting.post("/api/chat", &body).await).await;
}

#[tokio::test]
async fn conversation_is_read_in_pages_of_turns() {
    let setting = setting((1..=51).map(|number| Answer::from_text(format!("a{number}"))));
    for number in 1..=51 {
        ask(&setting, &format!("q{number}")).await;
    }
    let (newest, before) = page(&setting, "").await;
    assert_eq!((newest.len(), newest[0].as_str(), newest[99].as_str()), (100, "q2", "a51"));
    let before = before.as_str().unwrap().to_owned();
    assert_eq!(
        page(&setting, &format!("before={before}")).await,
        (vec!["q1".into(), "a1".into()], Value::Null)
    );
    assert_eq!(page(&setting, "limit=100").await.0.len(), 102);
    let (two, before) = page(&setting, "limit=1").await;
    assert_eq!(two, ["q51", "a51"]);
    // A page stays where it is when the conversation continues.
    ask(&setting, "q52").await;
    let (two, _) = page(&setting, &format!("limit=1&before={}", before.as_str().unwrap())).await;
    assert_eq!(two, ["q50", "a50"]);
}

#[tokio::test]
async fn user_messages_have_the_turn_that_replaces_them() {
    let setting = setting(["a1", "a2", "a3"].map(Answer::from_text));
    ask(&setting, "q1").await;
    ask(&setting, "q2").await;
    let read = json_of(setting.get("/api/conversations/c1?view=page&limit=1").await).await;
    assert_eq!(read["messages"][0]["turn"], "q2");
    let body = json!({"message": "Again", "conversation": "c1", "replaces": "q2"});
    text(setting.post("/api/chat", &body).await).await;
    assert_eq!(setting.texts().await, ["q1", "a1", "Again", "a3"]);
}

#[tokio::test]
async fn window_does_not_hide_messages() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_window(Window::Turns(1));
    let model = ScriptedModel::new(["a1", "a2", "a3"].map(Answer::from_text));
    let setting = chain_over(memory, model, |client| client);
    for message in ["q1", "q2", "q3"] {
        ask(&setting, message).await;
    }
    assert_eq!(setting.texts().await, ["q1", "a1", "q2", "a2", "q3", "a3"]);
}

#[tokio::test]
async fn page_that_does_not_exist_is_refused() {
    let setting = setting([Answer::from_text("a1")]);
    ask(&setting, "q1").await;
    for query in ["limit=0", "limit=-1", "limit=x", "limit=", "before=0", "before=-1", "before=x"] {
        let response = setting.get(&format!("/api/conversations/c1?{query}")).await;
        assert_eq!(refused(response, StatusCode::BAD_REQUEST).await, "invalid_request", "{query}");
    }
    for path in ["c1?before=999", "unknown?before=1", "unknown"] {
        let response = setting.get(&format!("/api/conversations/{path}")).await;
        assert_eq!(refused(response, StatusCode::NOT_FOUND).await, "not_found", "{path}");
    }
}

#[tokio::test]
async fn conversations_are_listed_in_pages() {
    let setting = setting((0..101).map(|_| Answer::from_text("Hi.")));
    for number in 0..101 {
        let body = json!({"message": "Hello", "conversation": format!("c{number:03}")});
        text(setting.post("/api/chat", &body).await).await;
    }
    let first = json_of(setting.get("/api/conversations").await).await;
    assert_eq!((first["conversations"].as_array().unwrap().len(), &first["next"]), (100, &json!("c001")));
    assert_eq!(first["conversations"][0], "c100");
    let second = json_of(setting.get("/api/conversations?after=c001").await).await;
    assert_eq!(second, json!({"conversations": ["c000"], "next": null}));
}

#[tokio::test]
async fn deleted_conversation_has_no_turns() {
    let setting = setting([Answer::from_text("Before."), Answer::from_text("After.")]);
    let ask = json!({"message": "How is it?", "conversation": "c1", "turn": "t1"});
    assert!(text(setting.post("/api/chat", &ask).await).await.contains("Before."));
    setting.delete().await;
    assert!(text(setting.post("/api/chat", &ask).await).await.contains("After."), "it is a new turn");
}

/// The page lists titles: the first words of the user.
#[tokio::test]
async fn page_lists_titles() {
    let setting = setting([Answer::from_text("Hi."), Answer::from_text("Yes.")]);
    let long = format!("  \n {} \nsecond line", "ä".repeat(200));
    for (id, message) in [("c1", long.as_str()), ("c2", "Really?")] {
        let body = json!({"message": message, "conversation": id});
        text(setting.post("/api/chat", &body).await).await;
    }
    let listed = json_of(setting.get("/api/conversations?view=page").await).await;
    let expected = json!([{"id": "c2", "title": "Really?"}, {"id": "c1", "title": "ä".repeat(80)}]);
    assert_eq!((&listed["conversations"], &listed["next"]), (&expected, &Value::Null));
    let plain = json_of(setting.get("/api/conversations").await).await;
    assert_eq!(plain["conversations"], json!(["c2", "c1"]));
}
