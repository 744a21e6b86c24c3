//! A provider of a made-up wire format: what a new provider must write, and what it gets from `provider-http`.
//!
//! A request is `{"ask":[…],"tools":[…]}`. The answer has one JSON object per line: `{"say":"text"}`, `{"think":…}`,
//! `{"refuse":…}`, `{"call":["id","name"]}` and `{"input":"piece"}`, `{"used":[1,2,3,4]}`, `{"over":"stop"}`,
//! `{"end":true}`, `{"error":{…}}`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{
    ChatClient, ChatModel, ChatRequest, ChunkStream, Delta, DeltaKind, ErrorKind, FinishReason, Message,
    MessageContent, Result, Text, ToolCall, ToolCallDelta, ToolDefinition, Usage, async_trait,
};
use advisor_testkit::{ReplayServer, Reply};
use bytes::Bytes;
use http::HeaderName;
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::backoff::Backoff;
use provider_http::failure::ProviderError;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::server::{Authorization, Server};
use serde_json::{Value, json};

/// The wire format.
#[derive(Debug, Default)]
pub(crate) struct MadeUp {
    calls: i64,
}

impl WireFormat for MadeUp {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        let text = |key: &str| event[key].as_str();
        deltas.push_back(if let Some(text) = text("say") {
            Delta::text(text)
        } else if let Some(text) = text("think") {
            Delta::reasoning(text)
        } else if let Some(text) = text("refuse") {
            DeltaKind::Refusal(text.into()).into()
        } else if let [Some(id), Some(name)] = [0, 1].map(|at| event["call"][at].as_str()) {
            self.calls += 1;
            Delta::tool_call(ToolCallDelta::start(self.calls, id, name))
        } else if let Some(piece) = text("input") {
            Delta::tool_call(ToolCallDelta::arguments(self.calls, piece))
        } else if let Some(counts) = event.get("used") {
            let count = |at: usize| counts[at].as_u64();
            let mut usage = Usage::default();
            (usage.input_tokens, usage.output_tokens) = (count(0), count(1));
            (usage.cached_input_tokens, usage.reasoning_tokens) = (count(2), count(3));
            Delta::usage(usage)
        } else if let Some(reason) = text("over") {
            Delta::finish(match reason {
                "length" => FinishReason::Length,
                "calls" => FinishReason::ToolCalls,
                _ => FinishReason::Stop,
            })
        } else if event["end"] == true {
            Delta::done()
        } else {
            return Ok(Meaning::from_json(&event));
        });
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

/// Returns the body of a request.
pub(crate) fn body(request: &ChatRequest, names: &WireNames) -> Value {
    let message = |message: &Message| match message.content() {
        MessageContent::Tool(result) => json!({"result": result.text(), "of": result.call_id}),
        MessageContent::Assistant(_) => {
            let call = |call: &ToolCall| json!({"id": call.id, "name": names.tool(&call.name), "input": call.arguments});
            json!({"said": message.text(), "calls": message.tool_calls().map(call).collect::<Vec<_>>()})
        }
        _ => json!({ format!("{:?}", message.role()): message.text() }),
    };
    let tool = |tool: &ToolDefinition| json!({"name": names.tool(&tool.name), "does": tool.description, "takes": tool.parameters});
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    json!({"ask": messages, "tools": request.api_tools().definitions().map(tool).collect::<Vec<_>>()})
}

/// Returns the names of tools and ids of calls as the server takes them.
pub(crate) fn names(request: &ChatRequest) -> WireNames {
    WireNames::new(request, IdRule::Any, NameRule::Word, &[])
}

#[async_trait]
impl ChatModel for MadeUpModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let names = names(&request);
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

/// Writes a part of an answer.
pub(crate) fn lines(part: &AnswerPart) -> Bytes {
    let line = |json: Value| format!("{json}\n");
    let call = |id: &str, name: &str, pieces: &[&str]| {
        let pieces: String = pieces.iter().map(|piece| line(json!({ "input": piece }))).collect();
        line(json!({ "call": [id, name] })) + &pieces
    };
    let lines = match part {
        AnswerPart::Text(text) => line(json!({ "say": text })),
        AnswerPart::Reasoning(text) => line(json!({ "think": text })),
        AnswerPart::Refusal(text) => line(json!({ "refuse": text })),
        AnswerPart::Call { id, name, arguments } => call(id, name, arguments),
        AnswerPart::CutCall { id, name, arguments } => call(id, name, &[arguments]),
        AnswerPart::Usage(usage) => line(json!({ "used": [
            usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens,
        ] })),
        AnswerPart::Finish(FinishReason::Length) => line(json!({ "over": "length" })),
        AnswerPart::Finish(FinishReason::ToolCalls) => line(json!({ "over": "calls" })),
        AnswerPart::Finish(_) => line(json!({ "over": "stop" })),
        AnswerPart::End => line(json!({ "end": true })),
        AnswerPart::Failure(message) => line(json!({ "error": { "message": message } })),
        AnswerPart::Malformed => "{\"say\":}\n".to_owned(),
        _ => line(json!({ "version": 2 })),
    };
    lines.into()
}

/// The provider, for the suite.
struct Family;

impl WireFamily for Family {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        Arc::new(MadeUpModel::new().with_base_url(url).with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        Some(parts.iter().map(lines).collect())
    }
}

advisor_conformance::provider_conformance!(Family);

#[tokio::test]
async fn failures_are_retried_typed_and_redacted() {
    let key = "made-up-key-0123456789";
    let refusal = json!({"error": {"message": format!("no credit for {key}"), "code": "billing"}});
    let replies = [Reply::status(503), Reply::hang_up(), Reply::json(402, refusal)];
    let server = ReplayServer::start(replies).await.expect("a port");
    let moment = Duration::from_millis(1);
    let waits = Backoff { first: moment, longest: moment, ..Backoff::default() };
    let model = MadeUpModel::new().with_base_url(server.url()).with_api_key(key).with_retries(waits);
    let client = ChatClient::builder(model).build().expect("a chain");
    let error = client.prompt().user("Hello").call().await.expect_err("refused");
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Authentication, 3));
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ProviderError>());
    assert_eq!(source.map(|said| said.message.as_str()), Some("no credit for [secret]"));
}
