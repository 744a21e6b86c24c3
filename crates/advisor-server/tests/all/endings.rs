//! The end of an answer in the forms of clients: whole, cut, filtered, refused or stopped, as a stream and in one piece.

use advisor_core::{ChatClient, FinishReason, Limit, ToolDefinition};
use advisor_server::ChatServer;
use advisor_sse::Frame;
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::response::Response;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tool_call_advisor::ClientSideTool;

use crate::setting::{Setting, json_of, setting, text, until};

/// A server whose chain has a tool `ask_user`, which the client runs, and whose model ends for this reason.
fn ending(reason: &FinishReason) -> Setting {
    let answer = match reason {
        FinishReason::ToolCalls => Answer::from_calls([("c1", "ask_user", "{}")]),
        reason => Answer::new().text("It is").finish(reason.clone()).done(),
    };
    let model = ScriptedModel::new([answer]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let definition = ToolDefinition::new("ask_user", "Asks the user.", json!({"type": "object"}));
    let client = ChatClient::builder(model.clone())
        .advisor(memory.clone())
        .tool(ClientSideTool::new(definition))
        .build()
        .unwrap();
    Setting { server: ChatServer::new(client, memory), model }
}

const REASONS: [FinishReason; 7] = [
    FinishReason::Stop,
    FinishReason::ToolCalls,
    FinishReason::Length,
    FinishReason::ContentFilter,
    FinishReason::Refusal,
    FinishReason::Interrupted,
    FinishReason::Limit(Limit::Rounds(3)),
];

/// A route, the place of the ending in its stream and in its whole answer, and the value for each of [`REASONS`].
type Row = (&'static str, &'static str, &'static str, [Option<&'static str>; 7]);

const ROWS: [Row; 4] = [
    (
        "/v1/chat/completions",
        "/choices/0/finish_reason",
        "/choices/0/finish_reason",
        [
            Some("stop"),
            Some("tool_calls"),
            Some("length"),
            Some("content_filter"),
            Some("content_filter"),
            Some("length"),
            Some("length"),
        ],
    ),
    (
        "/v1/messages",
        "/delta/stop_reason",
        "/stop_reason",
        [
            Some("end_turn"),
            Some("tool_use"),
            Some("max_tokens"),
            Some("refusal"),
            Some("refusal"),
            Some("max_tokens"),
            Some("max_tokens"),
        ],
    ),
    (
        "/v1/responses",
        "/response/status",
        "/status",
        [
            Some("completed"),
            Some("completed"),
            Some("incomplete"),
            Some("incomplete"),
            Some("incomplete"),
            Some("incomplete"),
            Some("incomplete"),
        ],
    ),
    (
        "/v1/responses",
        "/response/incomplete_details/reason",
        "/incomplete_details/reason",
        [
            None,
            None,
            Some("max_output_tokens"),
            Some("content_filter"),
            Some("content_filter"),
            Some("max_output_tokens"),
            Some("max_output_tokens"),
        ],
    ),
];

fn question(is_stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "How is it?"}]);
    json!({"model": "chain", "max_tokens": 9, "messages": messages, "input": "How is it?", "stream": is_stream})
}

#[tokio::test]
async fn endings_have_the_words_of_each_client() {
    for (path, in_stream, in_whole, expected) in ROWS {
        for (reason, expected) in REASONS.iter().zip(expected) {
            let streamed = text(ending(reason).post(path, &question(true)).await).await;
            let events = Frame::read_all(&streamed).into_iter().rev().filter_map(|frame| frame.json());
            let last = events.filter_map(|event| Some(event.pointer(in_stream)?.as_str()?.to_owned())).next();
            assert_eq!(last.as_deref(), expected, "{path}, {reason:?}: {streamed}");
            let whole = json_of(ending(reason).post(path, &question(false)).await).await;
            let at = whole.pointer(in_whole).and_then(Value::as_str);
            assert_eq!(at, expected, "{path}, {reason:?}: {whole}");
        }
    }
}

/// The page says that the user has stopped the answer. Other clients get an error.
#[tokio::test]
async fn stopped_turn_is_no_failure_on_the_page() {
    for (path, end) in [
        ("/api/chat?view=page", r#"{"type":"stopped"}"#),
        ("/api/chat", r#"{"type":"error","error":"the request was cancelled""#),
    ] {
        let setting = setting([Answer::new().text("It is").hang()]);
        let asking = json!({"message": "How is it?", "conversation": "c1"});
        let (_, body) = until(setting.post(path, &asking).await, "It is").await;
        setting.post("/api/conversations/c1/stop", &json!({})).await;
        let rest = text(Response::new(Body::from_stream(body))).await;
        assert!(rest.contains(end), "{path}: {rest}");
    }
}
