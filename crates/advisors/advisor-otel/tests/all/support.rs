//! A turn of three rounds with parallel tools, and its telemetry.

use std::sync::Once;

use advisor_core::{
    ChatClient, ChatModel, ChatOptions, ChatRequest, ChunkStream, Delta, FinishReason, Result,
    ToolDefinition, Usage, async_trait,
};
use advisor_otel::GenAiExporter;
use advisor_testkit::{Answer, ScriptedModel};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tool_call_advisor::{FnTool, ToolCallAdvisor};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

/// A word in every text of the conversation.
pub(crate) const CONTENT: &str = "canary";

/// A scripted model with the name of a provider.
pub(crate) struct Grok(pub(crate) ScriptedModel);

#[async_trait]
impl ChatModel for Grok {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.stream(request).await
    }

    fn name(&self) -> &str {
        "xai"
    }

    fn model_name(&self) -> Option<&str> {
        Some("grok-9")
    }
}

fn usage(input: u64, output: u64) -> Delta {
    let mut usage = Usage::new(input, output);
    usage.cached_input_tokens = Some(input / 2);
    usage.cache_write_tokens = Some(1);
    usage.reasoning_tokens = Some(output / 2);
    Delta::usage(usage)
}

/// The model of three rounds: two tools at once, one that fails, and the answer.
pub(crate) fn model() -> Grok {
    let answer = |id: &str| Answer::new().delta(Delta::origin(Some(id.into()), Some("grok-9-0101".into())));
    let arguments = json!({ "place": CONTENT }).to_string();
    Grok(ScriptedModel::new([
        answer("r1")
            .text(format!("{CONTENT}, let me look."))
            .call("c1", "look", &arguments)
            .call("c2", "look", &arguments)
            .delta(usage(10, 4))
            .finish(FinishReason::ToolCalls),
        answer("r2").call("c3", "fail", &arguments).delta(usage(20, 6)).finish(FinishReason::ToolCalls),
        answer("r3").text(format!("{CONTENT} it is.")).delta(usage(30, 8)).finish(FinishReason::Stop),
    ]))
}

pub(crate) fn client(model: impl ChatModel) -> ChatClient {
    let definition = |name: &str| ToolDefinition::new(name, CONTENT, json!({"type": "object"}));
    let look = FnTool::new(definition("look"), |_: serde_json::Value| async { Ok(CONTENT) });
    let fail = FnTool::new(definition("fail"), |_: serde_json::Value| async {
        Err::<&str, _>(advisor_core::ToolError::new(CONTENT))
    });
    let mut options = ChatOptions { max_tokens: Some(100), temperature: Some(0.5), ..ChatOptions::default() };
    options.seed = Some(7);
    options.stop = vec!["END".into()];
    ChatClient::builder(model)
        .system(CONTENT)
        .options(options)
        .advisor(ToolCallAdvisor::new())
        .tool(look)
        .tool(fail)
        .build()
        .unwrap()
}

/// Runs the turn.
pub(crate) async fn run(client: &ChatClient) {
    let answer = client.prompt().user(CONTENT).conversation("c").turn("t").call().await.unwrap();
    assert_eq!(answer.text(), format!("{CONTENT} it is."));
}

/// Returns the spans of this work, in the order in which they ended.
pub(crate) async fn spans_of(work: impl Future) -> Vec<SpanData> {
    spans_with(|provider| advisor_otel::layer(provider).boxed(), work).await
}

/// The same, where this layer listens.
pub(crate) async fn spans_with(
    layer: impl FnOnce(&SdkTracerProvider) -> Box<dyn Layer<Registry> + Send + Sync>,
    work: impl Future,
) -> Vec<SpanData> {
    let exported = InMemorySpanExporter::default();
    let exporter = GenAiExporter::new(exported.clone());
    // Its shutdown empties the exporter.
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
    let installed = install_layer(layer(&provider));
    work.await;
    drop(installed);
    exported.get_finished_spans().unwrap()
}

/// Installs the layer of `provider` on this thread until the guard is dropped. A callsite asks only the subscribers
/// of the first thread that reaches it; the global subscriber keeps it enabled between two of ours.
pub(crate) fn install(provider: &SdkTracerProvider) -> DefaultGuard {
    install_layer(advisor_otel::layer(provider))
}

/// Does the same with a layer.
pub(crate) fn install_layer(layer: impl Layer<Registry> + Send + Sync + 'static) -> DefaultGuard {
    static ENABLED: Once = Once::new();
    ENABLED.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    });
    tracing::subscriber::set_default(tracing_subscriber::registry().with(layer))
}

/// Compares text with a file of `tests/golden`. If it differs, writes it beside the test programs for a look.
pub(crate) fn assert_golden(file: &str, written: &str) {
    let golden = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::fs::read_to_string(&golden).is_ok_and(|golden| golden == written) {
        return;
    }
    let found = format!("{}/{file}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&found, written).unwrap();
    panic!("{golden} differs from {found}:\n{written}");
}
