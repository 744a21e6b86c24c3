//! The journal of a turn: what its parts do, in their order.

use std::sync::Arc;

use advisor_core::{Error, ErrorKind, ToolDefinition, async_trait};
use advisor_server::Inspector;
use advisor_testkit::{Answer, Around, Asked, Journal, ScriptedModel, StoreAround, Work};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chat_memory_advisor::store::{ConversationStore, Version};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, StoreError};
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolCallStreaming};

use crate::setting::{Setting, chain_over, json_of, post, refused, setting, text, with_tokens};

/// The setting of the other tests, with an inspector.
fn inspected(answers: impl IntoIterator<Item = Answer>) -> Setting {
    inspected_over(InMemoryStore::new(), answers)
}

fn inspected_over(store: impl ConversationStore, answers: impl IntoIterator<Item = Answer>) -> Setting {
    let model = ScriptedModel::new(answers);
    let inspector = Inspector::new();
    let memory = ChatMemoryAdvisor::new(inspector.store(store));
    let definition = ToolDefinition::new("weather", "Tells the weather.", json!({"type": "object"}));
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    let tool = FnTool::new(definition, |_: Value| async { Ok("canary") });
    let setting = chain_over(memory, model, |client| client.advisor(tool_loop).tool(tool));
    setting.with(|server| server.with_inspector(&inspector).unwrap())
}

fn asking(turn: &str) -> Value {
    json!({"message": "canary", "conversation": "c1", "turn": turn})
}

const JOURNAL: &str = "/api/conversations/c1/turns/t1/journal";

/// Returns the journal that the server gives, as events in their order and as JSON.
async fn journal(setting: &Setting) -> (Journal, Value) {
    let json: Value = serde_json::from_str(&text(setting.get(JOURNAL).await).await).unwrap();
    let journal = Journal::new();
    for event in json["events"].as_array().unwrap() {
        journal.record(event["label"].as_str().unwrap());
    }
    (journal, json)
}

#[tokio::test]
async fn law_o3_journal_shows_memory_before_tools_and_end() {
    let call = Answer::new().text("canary").call("a1", "weather", "{}").usage(10, 2).done();
    let setting = inspected([call, Answer::new().text("canary").usage(20, 5).done()]);
    text(setting.post("/api/chat", &asking("t1")).await).await;
    let (journal, json) = journal(&setting).await;
    journal.assert_order(&[
        "turn.start t1",
        "advisor.enter tool-call",
        "advisor.enter chat-memory",
        "model.ask r1",
        "model.first_chunk r1",
        "model.end r1",
        "advisor.completed chat-memory r1",
        "tool.start a1",
        "tool.end a1",
        "model.ask r2",
        "model.end r2",
        "advisor.completed chat-memory r2",
        "advisor.completed tool-call r2",
    ]);
    journal.assert_happens_before("stored*assistant(a1)*", "tool.start a1");
    journal.assert_happens_before("stored* end", "advisor.completed tool-call r2");
    assert!(!json.to_string().contains("canary"), "a journal has no content: {json}");
    let events = json["events"].as_array().unwrap();
    let usage: Vec<_> = events.iter().filter_map(|event| event["fields"]["input_tokens"].as_u64()).collect();
    assert_eq!(usage, [10, 20]);
    assert!(events.iter().all(|event| event["at_ms"].is_u64()));
}

#[tokio::test]
async fn journal_shows_failures_and_stops() {
    let setting = inspected([Answer::refused(Error::new(ErrorKind::Timeout, "canary"))]);
    text(setting.post("/api/chat", &asking("t1")).await).await;
    let (journal, json) = journal(&setting).await;
    journal.assert_order(&["model.drop r1", "advisor.drop chat-memory"]);
    assert!(!json.to_string().contains("canary"), "{json}");

    let setting = inspected([Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "canary"))]);
    text(setting.post("/api/chat", &asking("t1")).await).await;
    self::journal(&setting).await.0.assert_order(&["model.first_chunk r1", "model.drop r1"]);
}

#[tokio::test]
async fn journal_of_an_answer_that_is_read_again_is_the_first_one() {
    let setting = inspected([Answer::from_text("Once.")]);
    text(setting.post("/api/chat", &asking("t1")).await).await;
    let first = journal(&setting).await.1;
    text(setting.post("/api/chat", &asking("t1")).await).await;
    assert_eq!(journal(&setting).await.1, first);
}

#[tokio::test]
async fn journals_are_off_by_default_and_of_one_tenant() {
    let plain = setting([Answer::from_text("Hi.")]);
    text(plain.post("/api/chat", &asking("t1")).await).await;
    refused(plain.get(JOURNAL).await, StatusCode::NOT_FOUND).await;

    let setting = with_tokens(inspected([Answer::from_text("Hi.")]));
    let ask = post("/api/chat")
        .header("authorization", "Bearer the-token-of-ann")
        .body(Body::from(asking("t1").to_string()));
    text(setting.send(ask.unwrap()).await).await;
    let read = |token: &str| {
        Request::get(JOURNAL).header("authorization", format!("Bearer {token}")).body(Body::empty()).unwrap()
    };
    assert!(json_of(setting.send(read("the-token-of-ann")).await).await["events"].is_array());
    refused(setting.send(read("the-token-of-bob")).await, StatusCode::NOT_FOUND).await;
    refused(setting.get(JOURNAL).await, StatusCode::UNAUTHORIZED).await;
}

/// A store that deletes, or never answers then.
struct Deleting(bool);

#[async_trait]
impl Around for Deleting {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        match asked {
            Asked::Delete if !self.0 => std::future::pending().await,
            _ => work.await,
        }
    }
}

/// The user wants it gone, whether or not the store says that it is.
#[tokio::test(start_paused = true)]
async fn deleted_conversation_has_no_journal_and_no_stream() {
    for (deletes, status) in [(true, StatusCode::NO_CONTENT), (false, StatusCode::SERVICE_UNAVAILABLE)] {
        let store = StoreAround::with(Arc::new(InMemoryStore::new()), Deleting(deletes));
        let setting = inspected_over(Arc::new(store), [Answer::from_text("Hi.")]);
        text(setting.post("/api/chat", &asking("t1")).await).await;
        let stream = || {
            let stream = Request::get("/api/conversations/c1/stream").header("x-turn-id", "t1");
            setting.send(stream.body(Body::empty()).unwrap())
        };
        assert_eq!(stream().await.status(), StatusCode::OK);
        let delete = Request::delete("/api/conversations/c1").body(Body::empty()).unwrap();
        assert_eq!(setting.send(delete).await.status(), status);
        refused(setting.get(JOURNAL).await, StatusCode::NOT_FOUND).await;
        assert_eq!(stream().await.status(), StatusCode::NO_CONTENT, "{status}");
    }
}
