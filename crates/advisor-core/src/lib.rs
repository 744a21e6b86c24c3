//! A streaming advisor chain for language-model calls.
//!
//! A request travels inwards through a chain of advisors to a model; the answer travels outwards as a
//! stream of chunks. The promise: **what an inner advisor does after an answer has completed before
//! anyone outside it learns that the answer is complete.**
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
//! - [`ChunkStream`] holds the promise: work added with [`ChunkStream::on_completed`] runs innermost
//!   first, each piece awaited, before `Completed` comes out.
//! - [`Turn`] is what a turn shares, [`TurnRecorder`] is told what becomes final in it.
//! - [`ChatClient`] is the way in, [`TurnStream`] a running turn, [`OnDrop`] what becomes of a dropped one.
//!
//! No HTTP and no vendor is known here. Nothing is spawned unless the caller gives a [`Spawner`].

mod advisor;
mod batches;
mod builder;
mod call_key;
mod chain;
mod chunk_stream;
mod client;
mod companions;
mod context_advisor;
mod delivered;
mod drop_caught;
mod edit;
mod effect;
mod end_when;
mod error;
mod fallback_model;
mod from_deltas;
mod from_fn;
mod ids;
mod in_span;
mod interrupted_calls;
mod into_id;
mod leniency;
mod model;
mod options;
mod placement;
mod plan;
mod prompt;
mod recorder;
mod replacements;
mod request;
mod request_messages;
mod spans;
mod started_calls;
mod text_stream;
mod tool;
mod tool_invocation;
mod tool_output;
mod tool_set;
mod turn;
mod turn_control;
mod turn_end;
mod turn_response;
mod turn_started;
mod turn_state;
mod turn_stream;
mod validate_tool;

pub use advisor::{Advisor, AdvisorInfo, StreamAdvisor};
pub use async_trait::async_trait;
pub use batches::Batches;
pub use builder::ChainBuilder;
pub use call_key::{CallKey, CallStart};
pub use chain::AdvisorChain;
pub use chunk_stream::ChunkStream;
pub use client::{ChatClient, ChatClientBuilder};
pub use context_advisor::{ContextFn, context_fn};
pub use drop_caught::drop_caught;
pub use edit::{HoldBack, PendingText};
pub use effect::{Effect, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use fallback_model::FallbackModel;
pub use from_fn::{FromFn, from_fn};
pub use ids::{ConversationKey, TurnId};
pub use into_id::IntoId;
pub use leniency::Leniency;
#[doc(no_inline)]
pub use message_aggregator::*;
pub use model::{ChatModel, SchemaSupport};
pub use options::{ChatOptions, ResponseFormat, ToolChoice};
pub use placement::{AdvisorRole, MemorySide, Phase, Placement};
pub use plan::{Plan, PlanEntry};
pub use prompt::Prompt;
pub use recorder::{Record, Step, TurnEnd, TurnRecorder};
pub use request::ChatRequest;
pub use started_calls::StartedCalls;
pub use text_stream::TextStream;
pub use tool::{Tool, ToolDefinition};
pub use tool_invocation::{Progress, ToolInvocation};
pub use tool_output::{ToolError, ToolOutput};
pub use tool_set::ToolSet;
pub use turn::Turn;
pub use turn_control::{OnDrop, Spawner, TurnHandle};
pub use turn_response::TurnResponse;
pub use turn_stream::TurnStream;
