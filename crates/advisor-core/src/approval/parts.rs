use async_trait::async_trait;
use message_aggregator::{ToolCall, ToolResult};

use crate::{CallKey, ChatRequest, ClientSideCall, ConversationKey, Result, Verdict};

/// The part of a memory that knows which calls a conversation waits for. An advisor returns it from
/// [`AdvisorInfo::pending_calls`](crate::AdvisorInfo::pending_calls), if it also applies the [`Decisions`](crate::Decisions)
/// of a turn.
#[async_trait]
pub trait PendingCalls: Send + Sync {
    /// Returns the calls that the last turn left to its caller and that have no result, in call order.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    async fn list(&self, conversation: &ConversationKey) -> Result<Vec<ClientSideCall>>;
}

/// The part of a tool loop that runs approved calls. An advisor returns it from
/// [`AdvisorInfo::call_runner`](crate::AdvisorInfo::call_runner).
#[async_trait]
pub trait CallRunner: Send + Sync {
    /// Checks that an approved call can run, before its start is recorded.
    ///
    /// # Errors
    /// Of kind [`Approval`](crate::ErrorKind::Approval) if the request has no such tool, or if the arguments do not fit.
    fn validate(&self, request: &ChatRequest, call: &DecidedCall) -> Result<()>;

    /// Runs the approved calls and returns one result per decided call, in their order. A call that is denied, fails or
    /// cannot run has an error result.
    ///
    /// `request` is that of the turn which continues after the calls: it has the tools, the turn and the conversation.
    ///
    /// # Cancellation
    /// Dropping the future drops the tools.
    ///
    /// # Errors
    /// If the execution itself fails.
    async fn run(&self, request: &ChatRequest, calls: Vec<DecidedCall>) -> Result<Vec<ToolResult>>;
}

/// A call about which a person has decided. If it is approved, its start is recorded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DecidedCall {
    /// The key of the call, which names the turn that made it.
    pub key: CallKey,
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// The decision.
    pub verdict: Verdict,
}

impl DecidedCall {
    /// Creates a decided call.
    #[must_use]
    pub fn new(key: CallKey, call: ToolCall, verdict: Verdict) -> Self {
        Self { key, call, verdict }
    }
}
