//! The forms of advisors, memory, the tool loop and telemetry.

use advisor_chain::chain::{EditedChunks, context_fn};
use advisor_chain::mcp::{ChainServer, McpServer};
use advisor_chain::otel::{self, GenAiExporter};
use advisor_chain::tools::{ToolCallStreaming, ToolSet, tools_fn};
use advisor_chain::{
    Advisor, AdvisorChain, AdvisorInfo, ChatClient, ChatMemoryAdvisor, ChatRequest, ChatResponse, Chunk,
    InMemoryStore, Result, ToolCallAdvisor, ToolDefinition, async_trait, from_fn,
};
use advisor_testkit::ScriptedModel;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use super::{Base, Row, Touch, tool};

pub(super) fn core() -> Vec<Row> {
    vec![
        Row::new("Advisor", || BeforeAndAfter),
        Row::new("from_fn", || {
            from_fn("passes", |request: ChatRequest, next: AdvisorChain| async move {
                next.next_stream(request).await
            })
        })
        .in_a(Base::Text, ", passes the stream on"),
        Row::new("from_fn", || {
            from_fn("looks", |request: ChatRequest, next: AdvisorChain| async move {
                let look = |chunk: &Chunk| {
                    std::hint::black_box(chunk.text());
                };
                Ok(next.next_stream(request).await?.inspect_chunks(look))
            })
        })
        .in_a(Base::Text, ", `inspect_chunks`")
        .touching(Touch::Looks),
        Row::new("from_fn", || {
            from_fn("edits", |request: ChatRequest, next: AdvisorChain| async move {
                Ok(next
                    .next_stream(request)
                    .await?
                    .edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| out.push(chunk)))
            })
        })
        .in_a(Base::Text, ", `edit_with`")
        .touching(Touch::Works(1_200)),
        Row::new("context_fn", || context_fn("date", |_: ChatRequest| async { Ok("It is Monday.") })),
        Row::new("tools_fn", || {
            tools_fn("clock", |_: ChatRequest| async { Ok(ToolSet::new().with(tool("clock"))) })
        }),
    ]
}

pub(super) fn memory_and_tools() -> Vec<Row> {
    let streaming = |mode| ToolCallAdvisor::builder().streaming(mode).build().unwrap();
    vec![
        Row::new("ChatMemoryAdvisor", || ChatMemoryAdvisor::new(InMemoryStore::new()))
            .in_a(Base::Text, ", in memory"),
        Row::adding(
            "ToolCallAdvisor",
            Box::new(move |client, _| client.advisor(streaming(ToolCallStreaming::TextOnly))),
        )
        .in_a(Base::Offer, ", `TextOnly`")
        .touching(Touch::Looks),
        Row::adding(
            "ToolCallAdvisor",
            Box::new(move |client, _| client.advisor(streaming(ToolCallStreaming::FinalAnswerOnly))),
        )
        .in_a(Base::Offer, ", `FinalAnswerOnly`")
        .touching(Touch::Looks),
        Row::adding(
            "McpTools",
            Box::new(|client, runtime| client.advisor(runtime.block_on(server().connect()).unwrap())),
        ),
        Row::adding(
            "GenAiExporter",
            Box::new(|client, _| {
                let exporter = GenAiExporter::new(Discarded);
                let tracers = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
                let subscriber = tracing_subscriber::registry().with(otel::layer(&tracers));
                // For the rest of this process, which counts one row.
                std::mem::forget(tracing::subscriber::set_default(subscriber));
                client
            }),
        )
        .in_a(Base::Text, " as a layer of `tracing`")
        .touching(Touch::Works(400)),
    ]
}

/// An advisor of the common form.
struct BeforeAndAfter;

impl AdvisorInfo for BeforeAndAfter {
    fn name(&self) -> &'static str {
        "before-and-after"
    }
}

#[async_trait]
impl Advisor for BeforeAndAfter {
    type State = usize;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, usize)> {
        let messages = request.messages.len();
        Ok((request, messages))
    }

    async fn after(&self, messages: usize, response: &ChatResponse) -> Result<()> {
        std::hint::black_box((messages, response.round()));
        Ok(())
    }
}

/// A server of one tool, in this process.
fn server() -> McpServer {
    McpServer::from_stream(|| {
        let (near, far) = tokio::io::duplex(64 << 10);
        let shop = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
        let shop = ChainServer::new(shop, ToolDefinition::new("ask", "Answers.", Value::Null)).unwrap();
        tokio::spawn(async move { shop.serve_stream(far).await });
        std::future::ready(Ok(near))
    })
}

/// Exports nothing.
#[derive(Debug)]
struct Discarded;

impl SpanExporter for Discarded {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        std::hint::black_box(spans);
        Ok(())
    }
}
