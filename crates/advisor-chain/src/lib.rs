//! A streaming advisor chain for language-model calls with tools and memory that stay consistent: the facade.
//!
#![doc = include_str!("../README.md")]
//!
//! # Modules
//! The root exports the names that are used most.
//!
//! | module | contents |
//! | --- | --- |
//! | [`messages`] | messages, blocks, deltas, chunks, responses, the aggregator |
//! | [`chain`] | placement, plan, extensions, recorders, cancellation, [`FallbackModel`] |
//! | [`tools`] | the tool loop's settings, hooks and executors, effects and keys of calls |
//! | [`memory`] | windows, summaries, policies, repair; [`memory::store`] the contract of a store |
//! | [`structured`], [`openai`], `gemini`, `anthropic`, `ollama`, `sqlite`, `postgres`, `redis`, `text_tool_calls`, `stream_policy`, `retrieval`, `retrieval_postgres`, `mcp`, `advisors`, `otel`, `sse`, `server` | the crate of that feature |
//!
//! [`FallbackModel`]: chain::FallbackModel

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
#[cfg(feature = "structured")]
#[doc(inline)]
pub use common_advisors::structured::PromptExt;
pub use named_model::{model, model_at};
#[cfg(feature = "openai")]
#[doc(inline)]
pub use provider_openai::OpenAiModel;
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
        AWAY_AFTER, AdvisorRole, Attempts, Backoff, BoxError, ChunkEditor, EarlierRound, EditedChunks,
        Embedding, EmbeddingModel, Extensions, FallbackModel, FromFn, HoldBack, IntoId, LoopHistory,
        NestedBounds, OnDrop, OncePerTurn, PendingText, Record, ResponseFormat, SchemaSupport, Spawner, Step,
        StreamItem, TurnEnd, TurnFacts, TurnHandle, TurnRecorder, TurnResponse, Waits, catch_panics,
        context_fn, drop_caught, text_with_sources, wait_in_words,
    };
}

/// Tools; with the feature `tools` also the loop that runs them.
pub mod tools {
    #[doc(inline)]
    pub use advisor_core::{
        CallKey, CallRunner, CallStart, ClientSideCall, DecidedCall, Decision, DecisionProblem, Decisions,
        Effect, Leniency, OUTCOME_UNKNOWN, PendingCall, PendingCalls, Progress, ToolError, ToolInvocation,
        ToolOutput, ToolSet, VERIFY_BEFORE_RETRYING, Verdict, tools_fn,
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
#[cfg(feature = "stream-policy")]
pub use common_advisors::policy as stream_policy;
#[cfg(feature = "retrieval")]
pub use common_advisors::retrieval;
#[cfg(feature = "structured")]
pub use common_advisors::structured;
#[cfg(feature = "anthropic")]
pub use provider_anthropic as anthropic;
#[cfg(feature = "gemini")]
pub use provider_gemini as gemini;
#[cfg(feature = "ollama")]
pub use provider_ollama as ollama;
#[cfg(feature = "openai")]
pub use provider_openai as openai;
#[cfg(feature = "retrieval-postgres")]
pub use retrieval_postgres;
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

/// Runs the code of the workspace's README and of the pages as tests.
#[cfg(all(doctest, feature = "typed-tools", feature = "memory", feature = "openai"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/writing-an-advisor.md")]
    struct WritingAnAdvisor;

    #[doc = include_str!("../../../docs/approvals.md")]
    struct Approvals;

    #[doc = include_str!("../../../docs/cookbook.md")]
    #[cfg(feature = "advisors")]
    struct Cookbook;
}
