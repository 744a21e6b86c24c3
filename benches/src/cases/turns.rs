//! Whole turns: the root, memory, the tool loop.

use advisor_chain::messages::{Block, BlockContent, Part, ToolCall, ToolResult};
use advisor_chain::tools::ToolLimits;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatModel, ChatRequest, ConversationKey, FnTool, InMemoryStore, Message,
    OpenAiModel, ToolCallAdvisor, ToolDefinition,
};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};

use super::answers::looking;
use super::{Case, runtime};
use crate::{InMemory, Shape};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("turn, memory, tool loop, three that look", "event", (1000, 3000), one_turn),
        Case::new("tool loop, rounds up to 50", "round", (10, 50), many_rounds),
        Case::new("tool loop, rounds up to 200", "round", (50, 200), many_rounds),
        Case::new("request, messages that were sent before", "message", (100, 300), request_again),
    ]
}

fn one_turn(events: usize) -> impl FnOnce() {
    turn(vec![Shape::OPENAI.body(events)], events)
}

/// Rounds of one call each, then a text.
fn many_rounds(rounds: usize) -> impl FnOnce() {
    let calls = (0..rounds).map(call_body);
    turn(calls.chain([Shape::OPENAI.body(16)]).collect(), 16)
}

fn turn(bodies: Vec<Vec<Bytes>>, texts: usize) -> impl FnOnce() {
    let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1");
    let definition = ToolDefinition::new("weather", "The weather.", json!({"type": "object"}));
    let result = "x".repeat(500);
    let limits = ToolLimits {
        rounds: Some(1000),
        calls: Some(10_000),
        calls_per_tool: Some(10_000),
        same_calls: Some(10_000),
        ..ToolLimits::default()
    };
    let builder = ChatClient::builder(model.with_transport(InMemory::new(bodies)));
    let builder = (0..3).fold(builder, |builder, _| builder.advisor(looking()));
    let client = builder
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
        .tool(FnTool::new(definition, move |_: Value| {
            let result = result.clone();
            async move { Ok(result) }
        }))
        .build()
        .unwrap();
    let runtime = runtime();
    move || {
        runtime.block_on(async {
            let key = ConversationKey::new("c").unwrap();
            let mut stream = client.prompt().user("?").conversation(key).stream();
            let mut seen = 0;
            while let Some(chunk) = stream.next().await {
                seen += usize::from(chunk.unwrap().text().is_some());
            }
            assert_eq!(seen, texts);
        });
    }
}

/// An answer that calls the tool once, with arguments in thirteen pieces.
fn call_body(round: usize) -> Vec<Bytes> {
    let pieces = [
        "{\\\"", "ci", "ty", "\\\":", "\\\"", "Os", "lo", "\\\",", "\\\"u", "nit", "\\\":\\\"", "C\\\"", "}",
    ];
    let head = format!(
        r#"{{"id":"r{round}","model":"m","choices":[{{"index":0,"delta":{{"role":"assistant","tool_calls":[{{"index":0,"id":"call_{round}","type":"function","function":{{"name":"weather","arguments":""}}}}]}},"finish_reason":null}}]}}"#
    );
    let arguments = pieces.map(|piece| {
        format!(
            r#"{{"id":"r{round}","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{piece}"}}}}]}},"finish_reason":null}}]}}"#
        )
    });
    let end = String::from(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#);
    let events = [head].into_iter().chain(arguments).chain([end, String::from("[DONE]")]);
    vec![Bytes::from(events.map(|event| format!("data: {event}\n\n")).collect::<String>())]
}

/// Prepares a request whose messages were all sent before, which gives the cost of sending each again.
fn request_again(messages: usize) -> impl FnOnce() {
    let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1");
    let model = model.with_transport(InMemory::new([Shape::OPENAI.body(1), Shape::OPENAI.body(1)]));
    let transcript = (0..messages / 2).flat_map(|number| {
        let id = format!("call_{number}");
        let call = ToolCall::new(id.as_str(), "weather", r#"{"city":"Oslo","unit":"C"}"#);
        let result = ToolResult::new(&call, vec![Part::from("x".repeat(500))]);
        [Message::assistant_blocks(vec![Block::new(BlockContent::ToolCall(call))]), Message::tool(result)]
    });
    let request = ChatRequest::new(std::iter::once(Message::user("?")).chain(transcript).collect::<Vec<_>>());
    let runtime = runtime();
    let ask = async |request: ChatRequest| {
        let mut stream = model.stream(request).await.unwrap();
        while let Some(chunk) = stream.next().await {
            chunk.unwrap();
        }
    };
    runtime.block_on(ask(request.clone()));
    // Dropping the messages is not part of the measurement.
    std::mem::forget(request.clone());
    move || {
        runtime.block_on(async {
            let mut stream = model.stream(request).await.unwrap();
            while let Some(chunk) = stream.next().await {
                chunk.unwrap();
            }
        });
    }
}
