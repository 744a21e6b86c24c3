//! Plays a transcript: through the model of its wire family, a chain and the tool loop.

use advisor_chain::openai::Profile;
use advisor_chain::openai::backoff::Backoff;
use advisor_chain::openai::transport::Transport;
use advisor_chain::text_tool_calls::{TextFormat, ToolCallFormat};
use advisor_tests::prelude::*;

use crate::quirks::notation::{chunk_line, error_line};
use crate::quirks::transcript::{Transcript, WireFamily};

/// Gives a model its transport. All models have these setters, and no trait of them.
macro_rules! with_transport {
    ($model:expr, $retries:expr, $transport:expr) => {
        Arc::new($model.with_api_key("key").with_retries($retries).with_transport($transport))
    };
}

/// Returns the model that reads a transcript.
pub(crate) fn model(transcript: &Transcript, transport: impl Transport) -> Arc<dyn ChatModel> {
    let streaming = transcript.setting("streaming") != Some("off");
    let retries = Backoff { retries: transcript.bodies.len().saturating_sub(1), ..Backoff::none() };
    match transcript.family {
        WireFamily::OpenAiChat => {
            let model = OpenAiModel::new("m").with_profile(chat_profile(transcript));
            with_transport!(model.with_streaming(streaming), retries, transport)
        }
        WireFamily::OpenAiResponses => {
            with_transport!(OpenAiResponsesModel::new("m").with_streaming(streaming), retries, transport)
        }
        WireFamily::Anthropic => {
            with_transport!(AnthropicModel::new("m").with_streaming(streaming), retries, transport)
        }
        WireFamily::Gemini => {
            with_transport!(GeminiModel::new("m").with_streaming(streaming), retries, transport)
        }
        WireFamily::Ollama => {
            with_transport!(OllamaModel::new("m").with_streaming(streaming), retries, transport)
        }
    }
}

fn chat_profile(transcript: &Transcript) -> Profile {
    match transcript.setting("profile") {
        None => Profile::compatible(),
        Some("azure") => Profile::for_base_url("https://x.openai.azure.com/openai/v1"),
        Some("deepseek") => Profile::for_base_url("https://api.deepseek.com"),
        Some("groq") => Profile::for_base_url("https://api.groq.com/openai/v1"),
        Some("llama.cpp") => Profile::llama_cpp(),
        Some("mistral") => Profile::for_base_url("https://api.mistral.ai/v1"),
        Some("ollama") => Profile::ollama(),
        Some("openai") => Profile::openai(),
        Some("openrouter") => Profile::for_base_url("https://openrouter.ai/api/v1"),
        Some("vllm") => Profile::vllm(),
        Some(other) => panic!("{}: profile: {other}", transcript.name),
    }
}

/// Returns a model that asks this one once.
pub(crate) fn one_round(model: Arc<dyn ChatModel>) -> impl ChatModel {
    OneRound(model)
}

/// Answers the first request with a model, and the next one, which has the results of tools, with a text.
struct OneRound(Arc<dyn ChatModel>);

#[async_trait]
impl ChatModel for OneRound {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        match request.round {
            1 => self.0.stream(request).await,
            _ => Ok(ChunkStream::answer(ChatResponse::from("Done.").in_round(request.round))),
        }
    }
}

fn tool(name: &str, result: &'static str) -> FnTool {
    let definition = ToolDefinition::new(name, "A tool.", json!({"type": "object"}));
    FnTool::new(definition, move |_: Value| async move { Ok(result) })
}

/// Returns the chain of a transcript: the tool loop, two tools, and this model.
pub(crate) fn client(transcript: &Transcript, model: impl ChatModel) -> ChatClient {
    let mut builder = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::builder().stream_tool_call_responses(true).build().unwrap())
        .tool(tool("weather", "sunny"))
        .tool(tool("time", "12:00"));
    match transcript.setting("text-calls") {
        None => {}
        Some("recovered") => {
            let recovered = TextFormat::ALL.to_vec();
            builder = builder.advisor(TextToolCalls { recovered, ..TextToolCalls::new(ToolCallFormat::Api) });
        }
        Some(other) => panic!("{}: text-calls: {other}", transcript.name),
    }
    builder.build().unwrap()
}

/// Plays a transcript, and returns the lines of its first round.
pub(crate) async fn play(transcript: &Transcript, transport: impl Transport) -> String {
    let client = client(transcript, one_round(model(transcript, transport)));
    // With the same id, the turn makes the same ids of calls.
    let mut turn = client.prompt().turn(TurnId::new("x").unwrap()).user("Hello").stream();
    let mut lines = String::new();
    while let Some(item) = turn.next().await {
        let line = match &item {
            Ok(chunk) if chunk.round() != 1 => break,
            Ok(chunk) => chunk_line(chunk),
            Err(error) => error_line(error),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}
