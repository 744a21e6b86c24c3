//! `LoopHooks`, `LoopOutcome` and `LoopEnd`: callbacks at the turning points of the loop.

use advisor_core::{
    ChatRequest, ChatResponse, ErrorKind, FinishReason, Message, MessageList, Result, Usage, async_trait,
};

use crate::{CallDecision, ReadyCall};

/// Hooks at the turning points of the tool loop. Every hook has a default that changes nothing.
///
/// # Ordering
/// In one turn: `loop_start` once · then per round `before_round`, the answer, `after_round`, `before_tool` for each
/// call, the tools, `next_messages` · and `finalize` exactly once on every exit. `after_round` runs after all advisors inside the
/// loop have completed for the answer. `next_messages` runs after all results of the round are recorded.
///
/// If a turn continues after approved calls, and memory is outside the loop, `loop_start` and the first `before_round` run
/// once more before, to find the tools of these calls. [`Turn::resolves_tools`](advisor_core::Turn::resolves_tools) tells
/// a hook that counts.
///
/// # Cancellation
/// Dropping the turn drops a running hook at its await point; `finalize` still runs.
///
/// # Errors
/// A failing hook ends the turn with its error: no further tool runs and the model is not asked again. Calls that
/// are stored already are answered "not started".
///
/// # Example
/// ```
/// use advisor_core::{ChatRequest, Message, Result, async_trait};
/// use tool_call_advisor::{LoopHooks, LoopOutcome};
///
/// struct Hurry;
///
/// #[async_trait]
/// impl LoopHooks for Hurry {
///     async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
///         Ok(if round == 5 { request.with_message(Message::user("Please come to an end.")) } else { request })
///     }
///     fn finalize(&self, outcome: &LoopOutcome) {
///         let _ = outcome.rounds;
///     }
/// }
/// ```
#[async_trait]
pub trait LoopHooks: Send + Sync + 'static {
    /// Runs before the first round; may change the request for the whole turn.
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(request)
    }

    /// Runs before each round, counted from 1; may change the request. Added messages, tools and options stay for
    /// the rounds that follow.
    async fn before_round(&self, request: ChatRequest, _round: u32) -> Result<ChatRequest> {
        Ok(request)
    }

    /// Runs after each round. The returned response steers the loop; shown and stored content stays unchanged.
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        Ok(response)
    }

    /// Decides about a call whose tool is known and whose arguments fit. Runs for each such call that no limit and no
    /// [policy](crate::ToolCallAdvisorBuilder::policy) denies, in call order, before any tool of the round starts.
    ///
    /// Of a call that the policy leaves to a person, only a denial counts: the person decides about what the model wrote.
    /// It also runs for an approved call whose arguments a person has changed, before it starts. Only a denial counts.
    /// Then the request is the first one of the turn, with empty results of the decided calls.
    ///
    /// The answer is not recorded yet, so a turn that is dropped meanwhile has started no call.
    async fn before_tool(&self, _call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        Ok(CallDecision::Run)
    }

    /// Runs after the tools, with the messages that the loop would send; returns the messages to send. Added
    /// messages stay for the rounds that follow and are recorded, unless they are ephemeral. A message that
    /// replaces another counts as added. Changed results, and changed answers with calls, are sent but not
    /// recorded. A memory inside the loop sends its stored messages instead.
    async fn next_messages(&self, next: MessageList, _results: &[Message]) -> Result<MessageList> {
        Ok(next)
    }

    /// Runs once on every exit: answer, limit, error or drop. It must not block.
    fn finalize(&self, _outcome: &LoopOutcome) {}
}

/// The outcome of a tool loop.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoopOutcome {
    /// The reason for its end.
    pub end: LoopEnd,
    /// Number of requests to the model.
    pub rounds: u32,
    /// Number of tool calls that were run, with those that a person has approved or denied.
    pub calls: u32,
    /// Summed usage of all rounds.
    pub usage: Option<Usage>,
    /// The final messages of the turn.
    pub transcript: MessageList,
}

/// The ways in which a tool loop ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopEnd {
    /// The loop ended with an answer, for this reason.
    Finished(FinishReason),
    /// The loop ended with an error of this kind.
    Failed(ErrorKind),
    /// The loop was dropped before its end.
    Dropped,
}

/// Hooks that do nothing.
#[async_trait]
impl LoopHooks for () {}
