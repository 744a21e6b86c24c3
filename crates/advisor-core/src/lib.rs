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
mod away;
mod backoff;
mod catch_panics;
mod chain;
mod client;
mod drop_caught;
mod error;
mod ids;
mod model;
mod request;
mod shared_turn;
mod spans;
mod stream;
mod tool;
mod turn;
mod turn_stream;

pub use approval::ClientSideCall;
pub use approval::decision::{Decision, Verdict};
pub use approval::observer::DecidedCallObserver;
pub use approval::parts::{CallRunner, DecidedCall, PendingCalls};
pub use async_trait::async_trait;
pub use at_most_once::call_key::{CallKey, CallStart};
pub use at_most_once::effect::{Effect, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
pub use at_most_once::started_calls::StartedCalls;
pub use away::AWAY_AFTER;
pub use backoff::{Backoff, Waits, wait_in_words};
pub use catch_panics::CatchPanics;
pub use chain::AdvisorChain;
pub use chain::advisor::{Advisor, AdvisorInfo, StreamAdvisor};
pub use chain::builder::ChainBuilder;
pub use chain::context_advisor::{ContextFn, context_fn};
pub use chain::decisions::{Decisions, ResolvedTools};
pub use chain::from_fn::{FromFn, from_fn};
pub use chain::placement::{AdvisorRole, History, MemorySide, Phase, PhaseOrder, Placement};
pub use chain::plan::{Plan, PlanEntry};
pub use chain::tools_fn::{ToolsFn, tools_fn};
pub use client::into_id::IntoId;
pub use client::prompt::Prompt;
pub use client::{ChatClient, ChatClientBuilder};
pub use drop_caught::drop_caught;
pub use error::{BoxError, DecisionProblem, Error, ErrorKind, Result, text_with_sources};
pub use ids::{ConversationKey, TurnId};
#[doc(no_inline)]
pub use message_aggregator::*;
pub use model::embedding_model::{Embedding, EmbeddingError, EmbeddingModel};
pub use model::fallback_model::FallbackModel;
pub use model::{ChatModel, SchemaSupport};
pub use request::ChatRequest;
pub use request::described_schema::described_schema;
pub use request::options::{ChatOptions, ParallelToolCalls, ResponseFormat, ToolChoice};
pub use shared_turn::kept_chunks::KeptChunks;
pub use shared_turn::reader::{ReaderError, TurnReader};
pub use shared_turn::{OnUnread, SharedTurn};
pub use stream::attempts::Attempts;
pub use stream::chunk_stream::ChunkStream;
pub use stream::edit::{ChunkEditor, EditedChunks, HoldBack, PendingText};
pub use stream::item::StreamItem;
pub use tool::invocation::{Progress, RunGuard, ToolInvocation};
pub use tool::leniency::Leniency;
pub use tool::output::{ToolError, ToolOutput};
pub use tool::set::ToolSet;
pub use tool::{Tool, ToolDefinition};
pub use turn::Turn;
pub use turn::answered_before::AnsweredBefore;
pub use turn::earlier_rounds::EarlierRound;
pub use turn::end_turn::EndTurn;
pub use turn::extensions::Extensions;
pub use turn::last_answer::LastAnswer;
pub use turn::nested_bounds::NestedBounds;
pub use turn::once_per_turn::OncePerTurn;
pub use turn::recorder::{PendingCall, Record, Step, TurnEnd, TurnRecorder};
pub use turn_stream::TurnStream;
pub use turn_stream::control::{OnDrop, Spawner, TurnHandle};
pub use turn_stream::response::TurnResponse;
pub use turn_stream::text::TextStream;
