//! A provider of a made-up wire format: what a new provider must write, and what it gets from `provider-http`.
//!
//! A request is `{"ask":[…],"tools":[…]}`. The answer has one JSON object per line: `{"say":"text"}`,
//! `{"call":{"id":"c1","name":"f","input":{}}}`, `{"used":[3,5]}`, and `{"over":"stop"}` at the end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    BlockContent, ChatClient, ChatModel, ChatRequest, ChunkStream, Delta, ErrorKind, FinishReason, Message,
    MessageContent, Result, Text, ToolCallDelta, ToolDefinition, Usage, async_trait,
};
use advisor_testkit::{ReplayServer, Reply};
use http::HeaderName;
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::backoff::Backoff;
use provider_http::failure::ProviderError;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::server::{Authorization, Server};
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor};

const KEY: &str = "made-up-key-0123456789";

/// The wire format.
#[derive(Debug, Default)]
struct MadeUp {
    calls: i64,
}

impl WireFormat for MadeUp {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        if let Some(text) = event["say"].as_str() {
            deltas.push_back(Delta::text(text));
        } else if let Some(call) = event.get("call") {
            let text = |key: &str| call[key].as_str().unwrap_or_default();
            deltas.push_back(Delta::tool_call(ToolCallDelta::start(self.calls, text("id"), text("name"))));
            let arguments = ToolCallDelta::arguments(self.calls, call["input"].to_string());
            deltas.push_back(Delta::tool_call(arguments));
            self.calls += 1;
        } else if let [Some(input), Some(output)] = [0, 1].map(|at| event["used"][at].as_u64()) {
            deltas.push_back(Delta::usage(Usage::new(input, output)));
        } else if let Some(reason) = event["over"].as_str() {
            let reason = if reason == "call" { FinishReason::ToolCalls } else { FinishReason::Stop };
            deltas.extend([Delta::finish(reason), Delta::done()]);
        } else {
            return Ok(Meaning::from_json(&event));
        }
        Ok(Meaning::Piece)
    }
}

/// The model.
#[must_use]
struct MadeUpModel {
    model: Option<Text>,
    server: Server,
}

impl MadeUpModel {
    fn new() -> Self {
        let key = Authorization::Header(HeaderName::from_static("x-made-up-key"));
        Self { model: None, server: Server::new("https://made-up.example", key) }
    }

    provider_http::server_setters!();
}

/// Writes the body of a request.
fn body(request: &ChatRequest, names: &WireNames) -> Value {
    let message = |message: &Message| match message.content() {
        MessageContent::Tool(result) => json!({"result": result.text(), "of": result.call_id}),
        MessageContent::Assistant(blocks) => {
            let calls = blocks.iter().filter_map(|block| match block.content() {
                BlockContent::ToolCall(call) => Some(json!({"id": call.id, "name": names.tool(&call.name)})),
                _ => None,
            });
            json!({"said": message.text(), "calls": calls.collect::<Vec<_>>()})
        }
        _ => json!({ format!("{:?}", message.role()): message.text() }),
    };
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    json!({"ask": messages, "tools": tools(request).map(|name| names.tool(name)).collect::<Vec<_>>()})
}

fn tools(request: &ChatRequest) -> impl Iterator<Item = &Text> {
    request.api_tools().definitions().map(|tool| &tool.name)
}

#[async_trait]
impl ChatModel for MadeUpModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let names = WireNames::new(&request, IdRule::Any, NameRule::Word, &[]);
        let body = body(&request, &names).to_string();
        let mut call = self.server.call("/answer", &[], body.into())?;
        call.tools = Some(Arc::new(names));
        self.server.stream(&call, request.round, request.aggregator_settings(), MadeUp::default).await
    }

    fn name(&self) -> &str {
        "made-up"
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }
}

fn lines(body: &str) -> Reply {
    Reply::raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

async fn server(replies: impl IntoIterator<Item = Reply>) -> (ReplayServer, MadeUpModel) {
    let server = ReplayServer::start(replies).await.expect("a port");
    let waits =
        Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(1), ..Backoff::default() };
    let model = MadeUpModel::new().with_base_url(server.url()).with_api_key(KEY).with_retries(waits);
    (server, model)
}

#[tokio::test]
async fn tool_loop_runs_over_made_up_provider() {
    let call =
        "{\"call\":{\"id\":\"c1\",\"name\":\"clock\",\"input\":{\"zone\":\"UTC\"}}}\n{\"over\":\"call\"}\n";
    let answer =
        "{\"say\":\"It \"}\n{\"say\":\"is \"}\n{\"say\":\"noon.\"}\n{\"used\":[3,5]}\n{\"over\":\"stop\"}\n";
    let (server, model) = server([lines(call), lines(answer)]).await;
    let clock = FnTool::new(
        ToolDefinition::new("clock", "Returns the time.", json!({"type": "object"})),
        |arguments: Value| async move { Ok(arguments.to_string()) },
    );
    let client =
        ChatClient::builder(model).advisor(ToolCallAdvisor::new()).tool(clock).build().expect("a chain");
    let response = client.prompt().user("What time is it?").call().await.expect("an answer");
    assert_eq!(response.text(), "It is noon.");
    assert_eq!(response.usage().and_then(|usage| usage.output_tokens), Some(5));
    let asked = server.requests()[1].json().expect("JSON");
    assert_eq!(asked["ask"][2], json!({"result": "{\"zone\":\"UTC\"}", "of": "c1"}));
}

#[tokio::test]
async fn failures_are_retried_typed_and_redacted() {
    let refusal = json!({"error": {"message": format!("no credit for {KEY}"), "code": "billing"}});
    let (server, model) = server([Reply::status(503), Reply::hang_up(), Reply::json(402, refusal)]).await;
    let client = ChatClient::builder(model).build().expect("a chain");
    let error = client.prompt().user("Hello").call().await.expect_err("refused");
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Authentication, 3));
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ProviderError>());
    assert_eq!(source.map(|said| said.message.as_str()), Some("no credit for [secret]"));
}

#[tokio::test]
async fn cut_answer_is_truncated() {
    let (_server, model) = server([lines("{\"say\":\"It \"}\n{\"say\":\"i")]).await;
    let client = ChatClient::builder(model).build().expect("a chain");
    let error = client.prompt().user("Hello").call().await.expect_err("cut");
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.partial().map(|partial| partial.text()), Some("It ".to_owned()));
}
