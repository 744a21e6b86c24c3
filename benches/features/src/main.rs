//! A program that uses one thing of each feature that it is built with, so that the linker keeps it. It is built, not run.

use std::error::Error;

use advisor_chain::{ChatClient, ChatModel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    #[cfg(feature = "openai")]
    answer(provider_openai::OpenAiModel::new("some-model")).await?;
    #[cfg(feature = "anthropic")]
    answer(advisor_chain::anthropic::AnthropicModel::new("some-model")).await?;
    #[cfg(feature = "gemini")]
    answer(advisor_chain::gemini::GeminiModel::new("some-model")).await?;
    #[cfg(feature = "ollama")]
    answer(advisor_chain::ollama::OllamaModel::new("some-model")).await?;
    #[cfg(not(any(feature = "openai", feature = "anthropic", feature = "gemini", feature = "ollama")))]
    answer(echo::Echo).await?;
    Ok(())
}

async fn answer(model: impl ChatModel) -> Result<(), Box<dyn Error>> {
    let client = ChatClient::builder(model);
    #[cfg(feature = "tools")]
    let client = client.advisor(advisor_chain::ToolCallAdvisor::builder().build()?);
    #[cfg(feature = "typed-tools")]
    let client = client.tool(time());
    #[cfg(feature = "memory")]
    let client = client.advisor(memory().await?);
    #[cfg(feature = "text-tool-calls")]
    println!("{}", manifest());
    #[cfg(feature = "stream-policy")]
    let client = client.advisor(policy());
    #[cfg(feature = "retrieval")]
    let client = client.advisor(documents());
    #[cfg(feature = "retrieval-postgres")]
    println!("{:?}", vectors().await?);
    #[cfg(feature = "advisors")]
    let client = client.advisor(advisor_chain::advisors::Budget::for_each_turn().with_tokens(10_000));
    #[cfg(feature = "otel")]
    println!("{}", std::any::type_name::<advisor_chain::otel::GenAiMetrics>());
    #[cfg(feature = "otlp")]
    let _exporting = advisor_chain::otel::Otlp::new().start()?;
    #[cfg(feature = "mcp")]
    let client = client.advisor(advisor_chain::mcp::McpServer::from_url("http://127.0.0.1").connect().await?);
    let response = client.build()?.prompt().user("Hello").conversation("c1").call().await?;
    println!("{}", response.text());
    Ok(())
}

#[cfg(feature = "text-tool-calls")]
fn manifest() -> String {
    use advisor_chain::text_tool_calls::{TextFormat, TextTools};
    TextTools::new([]).describe(TextFormat::Json)
}

#[cfg(feature = "stream-policy")]
fn policy() -> impl advisor_chain::StreamAdvisor {
    advisor_chain::stream_policy::ReplaceText::new([("secret", "[redacted]")])
}

#[cfg(feature = "retrieval")]
fn documents() -> impl advisor_chain::StreamAdvisor {
    use advisor_chain::retrieval::{Document, Query, Retrieval};
    Retrieval::new(|query: Query| async move { Ok(vec![Document::new("echo", query.text)]) })
}

#[cfg(feature = "retrieval-postgres")]
async fn vectors() -> Result<impl std::fmt::Debug, Box<dyn Error>> {
    use advisor_chain::retrieval_postgres::PostgresVectors;
    Ok(PostgresVectors::connect("postgres://app@127.0.0.1/app", 3).await?)
}

#[cfg(feature = "typed-tools")]
fn time() -> impl advisor_chain::Tool {
    type Nothing = std::collections::BTreeMap<String, String>;
    advisor_chain::FnTool::typed("time", "Tells the time.", |_: Nothing, _| async { Ok("12:00") })
}

#[cfg(feature = "memory")]
async fn memory() -> Result<advisor_chain::ChatMemoryAdvisor, Box<dyn Error>> {
    #[cfg(feature = "sqlite")]
    let store = advisor_chain::sqlite::SqliteStore::open("conversations.sqlite").await?;
    #[cfg(feature = "postgres")]
    let store = advisor_chain::postgres::PostgresStore::connect("postgres://app@127.0.0.1/app").await?;
    #[cfg(feature = "redis")]
    let store = advisor_chain::redis::RedisStore::connect("redis://127.0.0.1/").await?;
    #[cfg(not(any(feature = "sqlite", feature = "postgres", feature = "redis")))]
    let store = advisor_chain::InMemoryStore::new();
    let memory = advisor_chain::ChatMemoryAdvisor::new(store);
    #[cfg(feature = "tiktoken")]
    let memory = memory.with_token_counter(advisor_chain::memory::Tiktoken::for_model("gpt-4o")?);
    Ok(memory)
}

/// A model for a build without a provider.
#[cfg(not(any(feature = "openai", feature = "anthropic", feature = "gemini", feature = "ollama")))]
mod echo {
    use advisor_chain::{
        ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait,
    };

    pub(crate) struct Echo;

    #[async_trait]
    impl ChatModel for Echo {
        async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
            let said = request.messages.last().map(Message::text).unwrap_or_default();
            let answer = ChatResponse::new(request.round, Message::assistant(said), FinishReason::Stop);
            Ok(ChunkStream::answer(answer))
        }
    }
}
