//! A streaming advisor chain for language-model calls: one dependency for all of it.
//!
//! [`client`] returns a builder of a [`ChatClient`] with the tool loop in it. Add a memory, tools and advisors,
//! and read the answer as it arrives.
//!
//! # Example
//! ```
//! use advisor_chain::{ChatMemoryAdvisor, InMemoryStore, tool};
//! use advisor_testkit::{Answer, ScriptedModel};
//! use futures::StreamExt;
//!
//! /// Tells the time.
//! #[tool]
//! fn time() -> &'static str {
//!     "12:00"
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> advisor_chain::Result<()> {
//! // A scripted model replaces a real one, such as `OpenAiModel::from_env()?`.
//! let model = ScriptedModel::new([Answer::from_calls([("c1", "time", "{}")]), Answer::from_text("It is noon.")]);
//! let client = advisor_chain::client(model)
//!     .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
//!     .tool(time_tool())
//!     .build()?;
//! let mut turn = client.prompt().user("How late is it?").conversation("demo").stream();
//! while let Some(chunk) = turn.next().await {
//!     print!("{}", chunk?.text().unwrap_or_default());
//! }
//! # Ok(()) }
//! ```
//!
//! # Features
//! | feature | contents | by default |
//! | --- | --- | --- |
//! | `tools` | the tool loop, [`ToolCallAdvisor`] | yes |
//! | `schema-validation` | checks of arguments in the tool loop, and of schemas when a client is built | yes |
//! | `typed-tools` | tools whose arguments are a type, `#[tool]` and `FnTool::typed` | yes |
//! | `memory` | memory and the in-memory store, [`ChatMemoryAdvisor`] | yes |
//! | `tiktoken` | tokens as OpenAI's models count them, `Tiktoken` | no |
//! | `sqlite` | conversations in one SQLite file, `SqliteStore` | no |
//! | `postgres` | conversations in PostgreSQL, `PostgresStore` | no |
//! | `redis` | conversations in Redis or Valkey, `RedisStore`; with `server` also `RedisRelay` | no |
//! | `structured` | typed values in place of text, `entity` of [`PromptExt`] | yes |
//! | `text-tool-calls` | tool calls that a model writes into its text, `TextToolCalls` | no |
//! | `stream-policy` | judges for tool calls, redaction while the answer streams, guards, `stream_policy::BlockPolicy` | no |
//! | `retrieval` | documents found once per turn and cited, vector stores, `retrieval::Retrieval` | no |
//! | `retrieval-postgres` | a vector store in PostgreSQL with pgvector, `retrieval_postgres::PostgresVectors` | no |
//! | `mcp` | tools of Model Context Protocol servers, `mcp::McpServer` | no |
//! | `mcp-server` | a chain as a tool of such a server, `mcp::ChainServer` | no |
//! | `advisors` | budgets, retries, rate limits, a cache, routing, tools by search, templates, a watch over cached prompts, `advisors::Budget` | no |
//! | `otel` | traces and metrics by OpenTelemetry's conventions, `otel::GenAiExporter` | no |
//! | `otlp` | the same, sent to a collector, `otel::Otlp` | no |
//! | `sse` | answers out to clients: AI SDK, AG-UI, OpenAI, Anthropic, a chat page, `sse::encode` | no |
//! | `server` | the chain as an HTTP service, `server::ChatServer` | no |
//! | `openai` | OpenAI and compatible servers, [`OpenAiModel`] and [`openai::OpenAiResponsesModel`] | yes |
//! | `gemini` | Google's Gemini API and Vertex AI, `gemini::GeminiModel` | no |
//! | `anthropic` | Anthropic's Messages API, `anthropic::AnthropicModel` | no |
//! | `ollama` | Ollama's own API, `ollama::OllamaModel` | no |
//!
//! Without a feature its crate is not built. Features are independent of one another.
//!
//! # Modules
//! The root exports the names that are used most.
//!
//! | module | contents |
//! | --- | --- |
//! | [`messages`] | messages, blocks, deltas, chunks, responses, the aggregator |
//! | [`chain`] | placement, plan, extensions, recorders, cancellation, [`FallbackModel`], [`TextStream`] |
//! | [`tools`] | the tool loop's settings, hooks and executors, effects and keys of calls |
//! | [`memory`] | windows, summaries, policies, repair; [`memory::store`] the contract of a store |
//! | [`structured`], [`openai`], `gemini`, `anthropic`, `ollama`, `sqlite`, `postgres`, `redis`, `text_tool_calls`, `stream_policy`, `retrieval`, `retrieval_postgres`, `mcp`, `advisors`, `otel`, `sse`, `server` | the crate of that feature |
//!
//! [`FallbackModel`]: chain::FallbackModel
//! [`TextStream`]: chain::TextStream

mod named_model;

#[doc(inline)]
pub use advisor_core::{
    Advisor, AdvisorChain, AdvisorInfo, ChatClient, ChatClientBuilder, ChatModel, ChatOptions, ChatRequest,
    ChatResponse, Chunk, ChunkStream, ConversationKey, Error, ErrorKind, FinishReason, Message, Phase,
    Placement, Prompt, Result, Role, StreamAdvisor, Tool, ToolChoice, ToolDefinition, Turn, TurnId,
    TurnStream, async_trait, from_fn,
};
#[cfg(feature = "memory")]
#[doc(inline)]
pub use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
pub use named_model::{model, model_at};
#[cfg(feature = "openai")]
#[doc(inline)]
pub use provider_openai::OpenAiModel;
#[cfg(feature = "structured")]
#[doc(inline)]
pub use structured_output::PromptExt;
#[cfg(feature = "typed-tools")]
#[doc(inline)]
pub use tool_call_advisor::tool;
#[cfg(feature = "tools")]
#[doc(inline)]
pub use tool_call_advisor::{FnTool, ToolCallAdvisor};

/// Messages, blocks, deltas, chunks and responses, and the aggregator that builds them.
pub mod messages {
    #[doc(inline)]
    pub use message_aggregator::*;
}

/// Chains, their order and explanation, the shared state of a turn, and other ways to stream an answer.
pub mod chain {
    #[doc(inline)]
    pub use advisor_core::{
        AWAY_AFTER, AdvisorRole, AnsweredBefore, Attempts, Backoff, BoxError, CatchPanics, ChainBuilder,
        ChunkEditor, ContextFn, EditedChunks, Embedding, EmbeddingError, EmbeddingModel, EndTurn, Extensions,
        FallbackModel, FromFn, History, HoldBack, IntoId, KeptChunks, LastAnswer, MemorySide, NestedBounds,
        OnDrop, OnUnread, OncePerTurn, ParallelToolCalls, PendingText, PhaseOrder, Plan, PlanEntry,
        ReaderError, Record, ResponseFormat, SchemaSupport, SharedTurn, Spawner, Step, StreamItem,
        TextStream, TurnEnd, TurnHandle, TurnReader, TurnRecorder, TurnResponse, Waits, context_fn,
        drop_caught, text_with_sources, wait_in_words,
    };
}

/// Tools; with the feature `tools` also the loop that runs them.
pub mod tools {
    #[doc(inline)]
    pub use advisor_core::{
        CallKey, CallRunner, CallStart, ClientSideCall, DecidedCall, DecidedCallObserver, Decision,
        DecisionProblem, Decisions, Effect, Leniency, OUTCOME_UNKNOWN, PendingCall, PendingCalls, Progress,
        ResolvedTools, RunGuard, StartedCalls, ToolError, ToolInvocation, ToolOutput, ToolSet, ToolsFn,
        VERIFY_BEFORE_RETRYING, Verdict, tools_fn,
    };
    #[cfg(feature = "tools")]
    #[doc(inline)]
    pub use tool_call_advisor::*;
}

/// Memory: windows, repair, summaries. Its `store` holds the contract of a store, copies and the in-memory store.
#[cfg(feature = "memory")]
pub mod memory {
    #[doc(inline)]
    pub use chat_memory_advisor::*;
}

#[cfg(feature = "otel")]
pub use advisor_otel as otel;
#[cfg(feature = "server")]
pub use advisor_server as server;
#[cfg(feature = "sse")]
pub use advisor_sse as sse;
#[cfg(feature = "postgres")]
pub use chat_memory_postgres as postgres;
#[cfg(feature = "redis")]
pub use chat_memory_redis as redis;
#[cfg(feature = "sqlite")]
pub use chat_memory_sqlite as sqlite;
#[cfg(feature = "advisors")]
pub use common_advisors as advisors;
#[cfg(feature = "anthropic")]
pub use provider_anthropic as anthropic;
#[cfg(feature = "gemini")]
pub use provider_gemini as gemini;
#[cfg(feature = "ollama")]
pub use provider_ollama as ollama;
#[cfg(feature = "openai")]
pub use provider_openai as openai;
#[cfg(feature = "retrieval")]
pub use retrieval;
#[cfg(feature = "retrieval-postgres")]
pub use retrieval_postgres;
#[cfg(feature = "stream-policy")]
pub use stream_policy;
#[cfg(feature = "structured")]
pub use structured_output as structured;
#[cfg(feature = "text-tool-calls")]
pub use text_tool_calls;
#[cfg(any(feature = "mcp", feature = "mcp-server"))]
pub use tools_mcp as mcp;

/// Returns a builder of a client around `model`. It adds the tool loop unless another one is added.
///
/// Without the feature `tools`, use [`ChatClient::builder`].
#[cfg(feature = "tools")]
pub fn client(model: impl ChatModel) -> ChatClientBuilder {
    ChatClient::builder(model).fallback_advisor(ToolCallAdvisor::new())
}

/// Runs the code of both READMEs and of the pages as tests.
#[cfg(all(doctest, feature = "typed-tools", feature = "memory", feature = "openai"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../README.md")]
    struct CrateReadme;

    #[doc = include_str!("../../../docs/writing-an-advisor.md")]
    struct WritingAnAdvisor;

    #[doc = include_str!("../../../docs/approvals.md")]
    struct Approvals;

    #[doc = include_str!("../../../docs/cookbook.md")]
    #[cfg(feature = "advisors")]
    struct Cookbook;
}
