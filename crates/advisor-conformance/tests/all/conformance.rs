//! A provider of a made-up wire format passes the conformance suite, and each of its faults is found.
//!
//! An answer has one JSON object per line: `{"say":"text"}`, `{"think":…}`, `{"refuse":…}`, `{"call":["id","name"]}`
//! and `{"input":"piece"}`, `{"used":[1,2,3,4]}`, `{"over":"stop"}`, `{"end":true}`, `{"error":{…}}`.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use advisor_conformance::provider::{self, AnswerPart, WireFamily};
use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, Delta, DeltaKind, FinishReason, MessageContent, Result, ToolCall,
    ToolCallDelta, ToolDefinition, Usage, async_trait,
};
use bytes::Bytes;
use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::backoff::Backoff;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::server::{Authorization, Server};
use provider_http::transport::{ByteStream, ReqwestTransport, Transport, TransportError};
use serde_json::{Value, json};

mod without_fault {
    advisor_conformance::provider_conformance!(super::Family(super::Fault::None));
}

/// What is wrong with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    LosesText,
    HoldsTextBack,
    ThinksAloud,
    RefusesAsText,
    JoinsCalls,
    SwapsNames,
    EndsEarly,
    IgnoresFailures,
    RefusesUnknownEvents,
    AcceptsMalformedEvents,
    MiscountsUsage,
    ForgetsTheLimit,
    LosesPieces,
    ReadsOnAfterDrop,
    ForgetsResults,
    ForgetsNames,
    ForgetsSchemas,
    DropsWhiteSpace,
    LogsText,
    Retries,
}

/// The wire format.
#[derive(Debug)]
struct MadeUp {
    fault: Fault,
    events: u32,
    calls: i64,
    first_name: Option<String>,
    held: Option<Delta>,
}

impl MadeUp {
    fn new(fault: Fault) -> Self {
        Self { fault, events: 0, calls: 0, first_name: None, held: None }
    }

    fn say(&mut self, text: &str, deltas: &mut VecDeque<Delta>) {
        if self.fault == Fault::LogsText {
            tracing::debug!(text, "a piece of text");
        }
        match self.fault {
            Fault::LosesText if self.events % 3 == 2 => {}
            Fault::DropsWhiteSpace if text.trim().is_empty() => {}
            Fault::HoldsTextBack => deltas.extend(self.held.replace(Delta::text(text))),
            Fault::EndsEarly => deltas.extend([Delta::text(text), Delta::finish(FinishReason::Stop)]),
            _ => deltas.push_back(Delta::text(text)),
        }
    }

    fn call(&mut self, call: &Value, deltas: &mut VecDeque<Delta>) {
        let mut name = call[1].as_str().unwrap_or_default().to_owned();
        let first = self.first_name.get_or_insert_with(|| name.clone()).clone();
        if self.fault == Fault::SwapsNames {
            name = first;
        }
        if self.fault != Fault::JoinsCalls || self.calls == 0 {
            self.calls += 1;
            let id = call[0].as_str().unwrap_or_default();
            deltas.push_back(Delta::tool_call(ToolCallDelta::start(self.calls, id, name)));
        }
    }

    fn used(&self, counts: &Value) -> Delta {
        let count = |at: usize| counts[at].as_u64();
        let mut usage = Usage::default();
        (usage.input_tokens, usage.output_tokens) = (count(0), count(1));
        (usage.cached_input_tokens, usage.reasoning_tokens) = (count(2), count(3));
        if self.fault == Fault::MiscountsUsage {
            usage.output_tokens = count(1).map(|count| count + 1);
        }
        Delta::usage(usage)
    }

    fn over(&self, reason: &str) -> Delta {
        Delta::finish(match reason {
            "length" if self.fault != Fault::ForgetsTheLimit => FinishReason::Length,
            "calls" => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        })
    }
}

impl WireFormat for MadeUp {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = match serde_json::from_str(event.data) {
            Err(_) if self.fault == Fault::AcceptsMalformedEvents => return Ok(Meaning::Unknown),
            event => event?,
        };
        self.events += 1;
        let text = |key: &str| event[key].as_str();
        if let Some(text) = text("say") {
            self.say(text, deltas);
            return Ok(Meaning::Piece);
        }
        deltas.extend(self.held.take());
        if let Some(text) = text("think") {
            deltas.push_back(match self.fault {
                Fault::ThinksAloud => Delta::text(text),
                _ => Delta::reasoning(text),
            });
        } else if let Some(text) = text("refuse") {
            deltas.push_back(match self.fault {
                Fault::RefusesAsText => Delta::text(text),
                _ => DeltaKind::Refusal(text.into()).into(),
            });
        } else if let Some(call) = event.get("call") {
            self.call(call, deltas);
        } else if let Some(piece) = text("input") {
            deltas.push_back(Delta::tool_call(ToolCallDelta::arguments(self.calls, piece)));
        } else if let Some(counts) = event.get("used") {
            deltas.push_back(self.used(counts));
        } else if let Some(reason) = text("over") {
            deltas.push_back(self.over(reason));
        } else if event["end"] == true {
            deltas.push_back(Delta::done());
        } else {
            return Ok(match (self.fault, Meaning::from_json(&event)) {
                (Fault::IgnoresFailures, _) => Meaning::Unknown,
                (Fault::RefusesUnknownEvents, Meaning::Unknown) => Meaning::Failure(Box::default()),
                (_, meaning) => meaning,
            });
        }
        Ok(Meaning::Piece)
    }
}

/// The provider, with a fault.
struct Family(Fault);

impl WireFamily for Family {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let retries = if self.0 == Fault::Retries { Backoff::default() } else { Backoff::none() };
        let mut server = Server::new(url, Authorization::Bearer);
        server.retries = retries;
        let inner = || ReqwestTransport::new(None).expect("a transport");
        server.transport = match self.0 {
            Fault::LosesPieces => Some(Arc::new(Lossy(inner()))),
            Fault::ReadsOnAfterDrop => Some(Arc::new(ReadingOn(inner()))),
            _ => None,
        };
        Arc::new(MadeUpModel { server, fault: self.0 })
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        Some(parts.iter().map(|part| lines(part).into()).collect())
    }
}

/// Writes a part of an answer.
fn lines(part: &AnswerPart) -> String {
    let line = |json: Value| format!("{json}\n");
    let call = |id: &str, name: &str, pieces: &[&str]| {
        let pieces: String = pieces.iter().map(|piece| line(json!({ "input": piece }))).collect();
        line(json!({ "call": [id, name] })) + &pieces
    };
    match part {
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
    }
}

struct MadeUpModel {
    server: Server,
    fault: Fault,
}

#[async_trait]
impl ChatModel for MadeUpModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let names = WireNames::new(&request, IdRule::Any, NameRule::Word, &[]);
        let said = |message: &advisor_core::Message| match message.content() {
            MessageContent::Tool(_) if self.fault == Fault::ForgetsResults => json!(null),
            MessageContent::Tool(result) => json!(result.text()),
            _ => {
                let call = |call: &ToolCall| json!([names.tool(&call.name), call.arguments]);
                let calls: Vec<Value> = message.tool_calls().map(call).collect();
                json!({ "said": message.text(), "calls": calls })
            }
        };
        let messages: Vec<Value> = request.messages.iter().map(said).collect();
        let tool = |tool: &ToolDefinition| {
            let schema =
                if self.fault == Fault::ForgetsSchemas { json!({}) } else { tool.parameters.clone() };
            json!({ "name": names.tool(&tool.name), "does": tool.description, "takes": schema })
        };
        let tools: Vec<Value> = request.tools.definitions().map(tool).collect();
        let body = json!({ "messages": messages, "tools": tools }).to_string().into();
        let mut call = self.server.call("/answer", &[], body)?;
        call.tools = Some(Arc::new(names)).filter(|_| self.fault != Fault::ForgetsNames);
        let settings = request.aggregator_settings();
        self.server.stream(&call, request.round, settings, || MadeUp::new(self.fault)).await
    }
}

/// Loses each thirtieth piece of a body.
struct Lossy(ReqwestTransport);

#[async_trait]
impl Transport for Lossy {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<ByteStream>, TransportError> {
        let response = self.0.send(request).await?;
        Ok(response.map(|body| {
            let kept = body.enumerate().filter(|(at, _)| std::future::ready(at % 30 != 29));
            kept.map(|(_, piece)| piece).boxed() as ByteStream
        }))
    }
}

/// Reads a body to its end in a task of its own.
struct ReadingOn(ReqwestTransport);

#[async_trait]
impl Transport for ReadingOn {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<ByteStream>, TransportError> {
        let response = self.0.send(request).await?;
        Ok(response.map(|mut body| {
            let (sender, receiver) = mpsc::unbounded();
            tokio::spawn(async move {
                while let Some(piece) = body.next().await {
                    let _dropped = sender.unbounded_send(piece);
                }
            });
            receiver.boxed() as ByteStream
        }))
    }
}

type Clause = for<'a> fn(&'a dyn WireFamily) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

macro_rules! clause {
    ($name:ident) => {
        |family| Box::pin(provider::$name(family))
    };
}

/// Each fault with a clause that finds it.
const FOUND: [(Fault, Clause); 20] = [
    (Fault::LosesText, clause!(text_streams_in_order)),
    (Fault::HoldsTextBack, clause!(law_s2_pieces_are_shown_as_they_arrive)),
    (Fault::ThinksAloud, clause!(reasoning_precedes_text)),
    (Fault::RefusesAsText, clause!(refusal_is_no_text)),
    (Fault::JoinsCalls, clause!(parallel_calls_of_one_tool_stay_apart)),
    (Fault::SwapsNames, clause!(parallel_calls_stay_apart)),
    (Fault::EndsEarly, clause!(end_of_body_needs_a_finish)),
    (Fault::IgnoresFailures, clause!(failure_follows_text)),
    (Fault::RefusesUnknownEvents, clause!(unknown_event_is_skipped)),
    (Fault::AcceptsMalformedEvents, clause!(malformed_event_is_an_error)),
    (Fault::MiscountsUsage, clause!(usage_is_counted)),
    (Fault::ForgetsTheLimit, clause!(length_is_reported)),
    (Fault::LosesPieces, clause!(text_streams_in_order)),
    (Fault::ReadsOnAfterDrop, clause!(law_r2_dropped_answer_closes_its_connection)),
    (Fault::ForgetsResults, clause!(tool_results_are_sent_back)),
    (Fault::ForgetsNames, clause!(tool_names_come_back)),
    (Fault::ForgetsSchemas, clause!(schema_of_a_tool_is_sent_as_it_is)),
    (Fault::DropsWhiteSpace, clause!(white_space_between_blocks_is_text)),
    (Fault::LogsText, clause!(law_r3_traces_show_no_secret_and_no_content)),
    (Fault::Retries, clause!(status_has_its_kind)),
];

#[tokio::test]
async fn every_fault_is_found() {
    let found = FOUND.map(|(fault, clause)| async move {
        let failed = AssertUnwindSafe(clause(&Family(fault))).catch_unwind().await.is_err();
        (!failed).then_some(fault)
    });
    let missed: Vec<_> = futures::future::join_all(found).await.into_iter().flatten().collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// A format of text alone.
struct Poor;

impl WireFamily for Poor {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        Family(Fault::None).model(url)
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let expressible =
            |part: &AnswerPart| matches!(part, AnswerPart::Text(_) | AnswerPart::Finish(_) | AnswerPart::End);
        parts.iter().all(expressible).then(|| parts.iter().map(|part| lines(part).into()).collect())
    }
}

#[tokio::test]
async fn only_optional_parts_may_be_missing() {
    provider::text_streams_in_order(&Poor).await;
    provider::reasoning_precedes_text(&Poor).await;
    provider::unknown_event_is_skipped(&Poor).await;
    let calls = AssertUnwindSafe(provider::call_arrives_whole(&Poor)).catch_unwind().await;
    assert!(calls.is_err(), "every format has calls");
}

#[test]
fn every_clause_is_run_by_the_macro() {
    let list = include_str!("../../src/provider/mod.rs");
    let clauses = [
        include_str!("../../src/provider/answers.rs"),
        include_str!("../../src/provider/connections.rs"),
        include_str!("../../src/provider/ends.rs"),
        include_str!("../../src/provider/requests.rs"),
        include_str!("../../src/provider/traces.rs"),
    ];
    let lines = clauses.iter().flat_map(|clauses| clauses.lines());
    for line in lines.filter_map(|line| line.strip_prefix("pub async fn ")) {
        let clause = line.split('(').next().unwrap();
        assert!(list.lines().any(|listed| listed.trim() == clause), "{clause} is not run");
    }
}
