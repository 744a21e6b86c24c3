//! `Judge`, which decides about a block, and `PendingBlock`, the block to decide about.

pub(crate) mod model_judge;
pub(crate) mod on_long_block;
pub(crate) mod verdict;
pub(crate) mod within;

use std::future::Future;

use advisor_core::{Block, BlockId, ChatRequest, Result, ToolCall, async_trait};

use self::verdict::Verdict;

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
/// An error, a timeout and a panic mean that there is no verdict; [`OnFailure`](crate::OnFailure) decides then.
///
/// # Example
/// ```
/// use stream_policy::{BlockPolicy, PendingBlock, Verdict};
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
