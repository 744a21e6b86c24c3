//! `Judge`, which decides about a block, its `Verdict`, and `PendingBlock`, the block to decide about.

pub(crate) mod model_judge;

use std::future::Future;

use advisor_core::{Block, BlockId, ChatRequest, FinishReason, Result, Text, ToolCall, async_trait};

/// Decides about complete blocks. A closure that returns a future is a judge.
///
/// # Ordering
/// A judge is called when a block is complete, and runs while the answer streams on. Several blocks are judged at a
/// time. It must not rely on the order in which it is called.
///
/// # Cancellation
/// The future is dropped if the answer ends, fails or is dropped, or if its attempt becomes void.
///
/// # Errors
/// An error, a timeout and a panic mean that there is no verdict; [`OnFailure`](crate::policy::OnFailure) decides then.
///
/// # Example
/// ```
/// use common_advisors::policy::{BlockPolicy, PendingBlock, Verdict};
///
/// let no_deletes = BlockPolicy::new(|pending: PendingBlock| async move {
///     let deletes = pending.call().is_some_and(|call| call.name == "delete");
///     Ok(if deletes { Verdict::deny("Ask an administrator.") } else { Verdict::Allow })
/// });
/// ```
#[async_trait]
pub trait Judge: Send + Sync + 'static {
    /// Decides about one block.
    async fn judge(&self, pending: PendingBlock) -> Result<Verdict>;
}

#[async_trait]
impl<F, Fut> Judge for F
where
    F: Fn(PendingBlock) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Verdict>> + Send + 'static,
{
    async fn judge(&self, pending: PendingBlock) -> Result<Verdict> {
        self(pending).await
    }
}

/// A complete block that waits for its verdict.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingBlock {
    /// The id of the block.
    pub id: BlockId,
    /// The block as the model ended it. A call that was cut off is incomplete, and never runs.
    pub block: Block,
    /// The request that is being answered, with its turn.
    pub request: ChatRequest,
}

impl PendingBlock {
    /// Creates a block that waits, for tests of judges.
    #[must_use]
    pub fn new(id: BlockId, block: Block, request: ChatRequest) -> Self {
        Self { id, block, request }
    }

    /// Returns the call of a tool-call block.
    #[must_use]
    pub fn call(&self) -> Option<&ToolCall> {
        self.block.as_tool_call()
    }
}

/// The decision about one block.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The block is emitted unchanged.
    Allow,
    /// The block is left out, and the policy's denial text takes its place.
    Deny {
        /// The reason, for the denial text. It may be empty.
        explanation: Text,
    },
    /// These blocks, of any kind, take its place. Without any, it is left out.
    ///
    /// A call among them is run by the tool loop. It gets an id if it has none; in place of another call, it gets that
    /// call's id. One block stands exactly where the replaced one stood. Several stand behind blocks that policies
    /// nearer to the model have added there.
    Replace(Vec<Block>),
    /// The answer ends without the block, for this reason. Text that streamed while the judge worked stays in it.
    ///
    /// The response lacks its id, its model and its token counts if the model has not ended: they come last.
    ///
    /// Calls that were emitted earlier run unless the reason [vetoes](FinishReason::vetoes_calls) them, as
    /// [`FinishReason::ContentFilter`] does.
    EndAnswer(FinishReason),
}

impl Verdict {
    /// Denies a block for this reason.
    pub fn deny(explanation: impl Into<Text>) -> Self {
        Self::Deny { explanation: explanation.into() }
    }
}
