//! `PendingCalls` and `CallRunner`: the parts of a memory and of a loop that decisions need.

use async_trait::async_trait;
use message_aggregator::{Text, ToolCall, ToolResult};

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
    /// Returns the request with which the loop opens its first round, for one that reaches the loop. It is only asked to
    /// find the tools of approved calls, in a chain whose memory is outside the loop.
    ///
    /// # Errors
    /// If the turn cannot begin.
    async fn first_request(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(request)
    }

    /// Checks that an approved call can run, before its start is recorded. `request` has the tools of the first round, as
    /// they arrive beside the model.
    ///
    /// # Errors
    /// Of kind [`Approval`](crate::ErrorKind::Approval) if the request has no such tool, or if the arguments do not fit.
    async fn validate(&self, request: &ChatRequest, call: &DecidedCall) -> Result<()>;

    /// Runs the approved calls and returns one result per decided call, in their order. A call that is denied, fails or
    /// cannot run has an error result.
    ///
    /// `request` is that of the turn which continues after the calls: it has the turn, the conversation, and the tools of
    /// the first round, as they arrive beside the model.
    ///
    /// # Cancellation
    /// Dropping the future drops the tools.
    ///
    /// # Errors
    /// If the execution itself fails.
    async fn run(&self, request: &ChatRequest, calls: Vec<DecidedCall>) -> Result<Vec<ToolResult>>;
}

/// A call about which a person has decided. If it is approved, its start is recorded before it runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DecidedCall {
    /// The key of the call, which names the turn that made it.
    pub key: CallKey,
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// The decision.
    pub verdict: Verdict,
    /// The [digest](crate::ToolDefinition::digest) of the tool's definition when the call was asked about, if known. An
    /// approval is only for a tool of this definition.
    pub definition: Option<Text>,
}

impl DecidedCall {
    /// Creates a decided call.
    #[must_use]
    pub fn new(key: CallKey, call: ToolCall, verdict: Verdict) -> Self {
        Self { key, call, verdict, definition: None }
    }

    /// Checks whether the decision is a denial.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Denied(_))
    }

    /// Sets the digest of the tool's definition when the call was asked about.
    #[must_use]
    pub fn with_definition(self, definition: Option<Text>) -> Self {
        Self { definition, ..self }
    }
}
