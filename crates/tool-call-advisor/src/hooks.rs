use advisor_core::{
    ChatRequest, ChatResponse, ErrorKind, FinishReason, Message, MessageList, Result, Usage, async_trait,
};

/// What a caller may do at the turning points of the tool loop. Every hook has a default that changes nothing.
///
/// # Ordering
/// In one turn: `loop_start` once · then per round `before_round`, the answer, `after_round`, the tools,
/// `next_messages` · and `finalize` exactly once on every exit. `after_round` runs after everything
/// inside the loop is done with the answer, `next_messages` after all results of the round are stored.
///
/// # Cancellation
/// A dropped turn drops a running hook at its await point; `finalize` runs nevertheless.
///
/// # Errors
/// A failing hook ends the turn with its error: no tool runs and nothing more is asked. Calls that are
/// stored already are answered "not started".
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
    /// Before the first round; may change the request for the whole turn.
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(request)
    }

    /// Before each round, counted from 1; may change the request. Messages that it adds, tools and options
    /// stay for the rounds that follow.
    async fn before_round(&self, request: ChatRequest, _round: u32) -> Result<ChatRequest> {
        Ok(request)
    }

    /// After each round. What it gives steers the loop; what was shown and stored stays as it is.
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        Ok(response)
    }

    /// After the tools: what is sent next, given what the loop would send. Messages that it adds stay for
    /// the rounds that follow and are remembered unless they are ephemeral; one that it puts in the place of
    /// another is one that it adds. Changed answers with calls and changed results are only sent: the
    /// transcript keeps what happened, and a memory inside the loop sends what it keeps.
    async fn next_messages(&self, next: MessageList, _results: &[Message]) -> Result<MessageList> {
        Ok(next)
    }

    /// At the end, however it comes: an answer, a limit, an error, a drop. It must not block.
    fn finalize(&self, _outcome: &LoopOutcome) {}
}

/// How a tool loop ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoopOutcome {
    /// How it ended.
    pub end: LoopEnd,
    /// How often the model was asked.
    pub rounds: u32,
    /// How many tool calls were run.
    pub calls: u32,
    /// What all rounds used together.
    pub usage: Option<Usage>,
    /// The messages of the turn that became final.
    pub transcript: MessageList,
}

/// The ways in which a tool loop ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopEnd {
    /// With an answer, for this reason.
    Finished(FinishReason),
    /// With an error of this kind.
    Failed(ErrorKind),
    /// It was dropped before its end.
    Dropped,
}

/// The hooks of a loop without hooks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoHooks;

#[async_trait]
impl LoopHooks for NoHooks {}
