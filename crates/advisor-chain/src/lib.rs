//! A streaming advisor chain for language-model calls: one dependency for all of it.
//!
//! [`client`] gives a [`ChatClient`] with the tool loop in it. Add a memory, tools and advisors of your
//! own, and read the answer as it comes.
//!
//! # Example
//! ```
//! use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, ToolDefinition};
//! use advisor_testkit::{Answer, ScriptedModel};
//! use futures::StreamExt;
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> advisor_chain::Result<()> {
//! // A scripted model stands in for a real one, such as `OpenAiModel::from_env()?`.
//! let model = ScriptedModel::new([Answer::from_calls([("c1", "time", "{}")]), Answer::from_text("It is noon.")]);
//! let time = ToolDefinition::new("time", "Tells the time.", json!({"type": "object"}));
//! let client = advisor_chain::client(model)
//!     .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
//!     .tool(FnTool::new(time, |_: Value| async { Ok("12:00") }))
//!     .build()?;
//! let mut turn = client.prompt().user("How late is it?").conversation("demo").stream();
//! while let Some(chunk) = turn.next().await {
//!     print!("{}", chunk?.text().unwrap_or_default());
//! }
//! # Ok(()) }
//! ```
//!
//! # Features
//! | feature | what it brings | by default |
//! | --- | --- | --- |
//! | `tools` | the tool loop, [`ToolCallAdvisor`] | yes |
//! | `schema-validation` | the tool loop checks arguments against schemas, and schemas when a client is built | yes |
//! | `typed-tools` | tools whose arguments are a type, `FnTool::typed` | yes |
//! | `memory` | memory and the in-memory store, [`ChatMemoryAdvisor`] | yes |
//! | `tiktoken` | tokens as OpenAI's models count them, `Tiktoken` | no |
//! | `sqlite` | conversations in one SQLite file, `SqliteStore` | no |
//! | `postgres` | conversations in PostgreSQL, `PostgresStore` | no |
//! | `redis` | conversations in Redis or Valkey, `RedisStore` | no |
//! | `structured` | typed values in place of text, `entity` of [`PromptExt`] | yes |
//! | `openai` | OpenAI and compatible servers, [`OpenAiModel`] | yes |
//!
//! Without a feature its crate is not built. No feature changes what another does.

#[doc(inline)]
pub use advisor_core::*;
#[cfg(feature = "memory")]
#[doc(inline)]
pub use chat_memory_advisor::*;
#[cfg(feature = "postgres")]
pub use chat_memory_postgres as postgres;
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use chat_memory_postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use chat_memory_redis as redis;
#[cfg(feature = "redis")]
#[doc(inline)]
pub use chat_memory_redis::RedisStore;
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use chat_memory_sqlite::SqliteStore;
#[cfg(feature = "memory")]
#[doc(inline)]
pub use conversation_store::*;
#[cfg(feature = "openai")]
pub use provider_openai as openai;
#[cfg(feature = "openai")]
#[doc(inline)]
pub use provider_openai::{OpenAiModel, Profile};
#[cfg(feature = "structured")]
#[doc(inline)]
pub use structured_output::*;
#[cfg(feature = "tools")]
#[doc(inline)]
pub use tool_call_advisor::*;

/// Begins a client around `model`, with the tool loop in it unless another one is added.
///
/// Without the feature `tools`, begin with [`ChatClient::builder`].
#[cfg(feature = "tools")]
pub fn client(model: impl ChatModel) -> ChatClientBuilder {
    ChatClient::builder(model).fallback_advisor(ToolCallAdvisor::new())
}

/// The README's start and the guide's code are tests, too.
#[cfg(all(doctest, feature = "tools", feature = "memory", feature = "openai"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/writing-an-advisor.md")]
    struct WritingAnAdvisor;
}
