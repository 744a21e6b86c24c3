//! Each fault of a provider is found by the conformance suite.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use advisor_conformance::provider::{self, AnswerPart, WireFamily};
use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, Delta, DeltaKind, FinishReason, Result, Text, async_trait,
};
use bytes::Bytes;
use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::backoff::Backoff;
use provider_http::server::{Authorization, Server};
use provider_http::transport::{ByteStream, ReqwestTransport, Transport, TransportError};
use serde_json::{Value, json};

use crate::made_up_provider::{MadeUp, body, lines, names};

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

/// The made-up wire format, with a fault.
#[derive(Debug)]
struct Faulty {
    fault: Fault,
    inner: MadeUp,
    events: u32,
    first_name: Option<Text>,
    held: Option<Delta>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self { fault, inner: MadeUp::default(), events: 0, first_name: None, held: None }
    }

    fn spoil(&mut self, mut delta: Delta, deltas: &mut VecDeque<Delta>) {
        if !matches!(delta.kind, DeltaKind::Text(_)) {
            deltas.extend(self.held.take());
        }
        match (self.fault, &mut delta.kind) {
            (Fault::LosesText, DeltaKind::Text(_)) if self.events % 3 == 2 => return,
            (Fault::DropsWhiteSpace, DeltaKind::Text(text)) if text.trim().is_empty() => return,
            (Fault::HoldsTextBack, DeltaKind::Text(_)) => return deltas.extend(self.held.replace(delta)),
            (Fault::EndsEarly, DeltaKind::Text(_)) => {
                return deltas.extend([delta, Delta::finish(FinishReason::Stop)]);
            }
            (Fault::JoinsCalls, DeltaKind::Arguments { index, .. }) => *index = Some(1),
            (Fault::LogsText, DeltaKind::Text(text)) => tracing::debug!(%text, "a piece of text"),
            (Fault::ThinksAloud, DeltaKind::Reasoning(text))
            | (Fault::RefusesAsText, DeltaKind::Refusal(text)) => delta = Delta::text(text.clone()),
            (Fault::MiscountsUsage, DeltaKind::Usage(usage)) => {
                usage.output_tokens = usage.output_tokens.map(|count| count + 1);
            }
            (Fault::ForgetsTheLimit, DeltaKind::Finish(_)) => delta = Delta::finish(FinishReason::Stop),
            (fault, DeltaKind::ToolCalls(calls)) => {
                for call in calls.iter_mut().filter(|call| call.name.is_some()) {
                    let is_first = self.first_name.is_none();
                    let first = self.first_name.get_or_insert_with(|| call.name.clone().unwrap_or_default());
                    match fault {
                        Fault::SwapsNames => call.name = Some(first.clone()),
                        Fault::JoinsCalls if !is_first => return,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        deltas.push_back(delta);
    }
}

impl WireFormat for Faulty {
    const FRAMING: Framing = MadeUp::FRAMING;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        self.events += 1;
        let mut read = VecDeque::new();
        let meaning = self.inner.read(event, &mut read);
        read.into_iter().for_each(|delta| self.spoil(delta, deltas));
        match (self.fault, meaning) {
            (Fault::AcceptsMalformedEvents, Err(_)) => Ok(Meaning::Unknown),
            (Fault::IgnoresFailures, Ok(Meaning::Failure(_))) => Ok(Meaning::Unknown),
            (Fault::RefusesUnknownEvents, Ok(Meaning::Unknown)) => Ok(Meaning::Failure(Box::default())),
            (_, meaning) => meaning,
        }
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
        Arc::new(FaultyModel { server, fault: self.0 })
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        Some(parts.iter().map(lines).collect())
    }
}

struct FaultyModel {
    server: Server,
    fault: Fault,
}

#[async_trait]
impl ChatModel for FaultyModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let names = names(&request);
        let mut body = body(&request, &names);
        let items =
            |name: &str, body: &mut Value| body[name].as_array_mut().map(std::mem::take).unwrap_or_default();
        match self.fault {
            Fault::ForgetsResults => {
                let asked =
                    items("ask", &mut body).into_iter().filter(|message| message.get("result").is_none());
                body["ask"] = asked.collect();
            }
            Fault::ForgetsSchemas => {
                let tools = items("tools", &mut body);
                body["tools"] = tools.into_iter().map(|tool| json!({ "name": tool["name"] })).collect();
            }
            _ => {}
        }
        let mut call = self.server.call("/answer", &[], body.to_string().into())?;
        call.tools = Some(Arc::new(names)).filter(|_| self.fault != Fault::ForgetsNames);
        let settings = request.aggregator_settings();
        self.server.stream(&call, request.round, settings, || Faulty::new(self.fault)).await
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
        parts.iter().all(expressible).then(|| parts.iter().map(lines).collect())
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
