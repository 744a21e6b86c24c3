//! Streaming advisor chain for language-model calls: an inner advisor completes its work after an answer
//! before any outer one learns of its end.
//!
#![doc = include_str!("../README.md")]
//!
//! ```text
//!            request                                   chunks, then Completed
//!               │                                               ▲
//!  ┌────────────▼───────────────────────────────────────────────┴──────────┐
//!  │ turn        once per turn: guards, logging, retrieval                 │
//!  │  ┌─────────▼────────────────────────────────────────────┴──────────┐  │
//!  │  │ loop     runs tools, asks again: at most one                    │  │
//!  │  │  ┌──────▼─────────────────────────────────────────┴──────────┐  │  │
//!  │  │  │ round  once per round: memory                             │  │  │
//!  │  │  │  ┌───▼──────────────────────────────────────┴──────────┐  │  │  │
//!  │  │  │  │ model call   once per attempt: retry, cache         │  │  │  │
//!  │  │  │  │            the model                                │  │  │  │
//! ```
//!
//! - [`ChatModel`] is the innermost link, [`StreamAdvisor`] and [`Advisor`] are the links,
//!   [`AdvisorChain`] is the whole or its rest.
//! - [`ChunkStream`] holds the promise: work added with [`ChunkStream::on_completed`] runs innermost first, each
//!   piece awaited, before `Completed` is emitted.
//! - [`Turn`] holds the state that a turn shares; a [`TurnRecorder`] receives each message that becomes final in
//!   it.
//! - [`ChatClient`] is the entry point, [`TurnStream`] a running turn, [`OnDrop`] the policy for a dropped turn.
//!
//! This crate knows no HTTP and no vendor. It spawns nothing unless the caller gives a [`Spawner`]. Absent on purpose are maps
//! of strings, thread-locals, order numbers of advisors, and a second path for answers that are not streamed: `call` reads
//! the stream to its end.

mod approval;
mod at_most_once;
mod backoff;
mod chain;
mod client;
mod error;
mod ids;
mod model;
mod panics;
mod request;
mod spans;
mod stream;
mod tool;
mod turn;
mod turn_stream;

pub use approval::{CallRunner, ClientSideCall, DecidedCall, Decision, PendingCalls, Verdict};
pub use async_trait::async_trait;
pub use at_most_once::{CallKey, CallStart, Effect, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
pub use backoff::{AWAY_AFTER, Backoff, Waits, wait_in_words};
pub use chain::AdvisorChain;
pub use chain::advisor::{Advisor, AdvisorInfo, StreamAdvisor};
pub use chain::decisions::Decisions;
pub use chain::functions::{FromFn, context_fn, from_fn, tools_fn};
pub use chain::placement::{AdvisorRole, LoopHistory, Phase, Placement};
pub use client::prompt::Prompt;
pub use client::{ChatClient, ChatClientBuilder, IntoId};
pub use error::{BoxError, DecisionProblem, Error, ErrorKind, Result, text_with_sources};
pub use ids::{ConversationKey, TurnId};
#[doc(no_inline)]
pub use message_aggregator::*;
pub use model::embedding_model::{Embedding, EmbeddingModel};
pub use model::fallback_model::FallbackModel;
pub use model::{ChatModel, SchemaSupport};
pub use panics::{catch_panics, drop_caught};
pub use request::ChatRequest;
pub use request::described_schema::described_schema;
pub use request::options::{ChatOptions, ResponseFormat, ToolChoice};
pub use stream::attempts::Attempts;
pub use stream::chunk_stream::ChunkStream;
pub use stream::edit::{ChunkEditor, EditedChunks, HoldBack, PendingText};
pub use stream::item::StreamItem;
pub use tool::run::{Progress, ToolError, ToolInvocation, ToolOutput};
pub use tool::set::ToolSet;
pub use tool::{Leniency, Tool, ToolDefinition};
pub use turn::extensions::{Extensions, OncePerTurn};
pub use turn::recorder::{PendingCall, Record, Step, TurnEnd, TurnRecorder};
pub use turn::{EarlierRound, NestedBounds, Turn, TurnFacts};
pub use turn_stream::control::{OnDrop, Spawner, TurnHandle};
pub use turn_stream::{TurnResponse, TurnStream};
