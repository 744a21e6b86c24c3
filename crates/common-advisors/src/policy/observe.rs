//! `ObserveBlocks`: callbacks for the blocks of each answer.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, BlockObserver, ChatRequest, ChunkStream, Phase, Placement, Result,
    StreamAdvisor, async_trait,
};

/// Calls an observer for each block of an answer, of every kind: when it opens, for each piece, and when it closes.
///
/// Each answer has a new observer. It is dropped with the answer, however that ends, so its `Drop` is the place
/// for cleanup. It sees blocks and cannot change them: [`BlockPolicy`](crate::policy::BlockPolicy) does that.
///
/// Its position is [`Phase::ModelCall`], where it sees the output of the policies inside it. In [`Phase::Turn`] it sees
/// the blocks of all rounds, as the caller does.
///
/// # Ordering
/// The observer is called before the chunk is delivered, in the order of the chunks. No chunk is held back.
///
/// # Example
/// ```
/// use advisor_core::{Block, BlockId, BlockObserver, ChatClient};
/// use advisor_testkit::{Answer, Journal, ScriptedModel};
/// use common_advisors::policy::ObserveBlocks;
///
/// struct Log(Journal);
///
/// impl BlockObserver for Log {
///     fn closed(&mut self, block: BlockId, content: &Block) {
///         self.0.record(format!("{block} is {:?}", content.kind()));
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let journal = Journal::new();
/// let of_log = journal.clone();
/// let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("Hello")]))
///     .advisor(ObserveBlocks::new(move |_| Log(of_log.clone())))
///     .build()?;
/// client.prompt().user("Hi").call().await?;
/// assert_eq!(journal.labels(), ["1.0 is Text"]);
/// # Ok(()) }
/// ```
#[must_use]
pub struct ObserveBlocks<F> {
    observer: F,
}

impl<F> ObserveBlocks<F> {
    /// Creates an advisor whose `observer` makes the observer of each answer, given its request.
    pub fn new<O>(observer: F) -> Self
    where
        F: Fn(&ChatRequest) -> O + Send + Sync + 'static,
        O: BlockObserver + Send + 'static,
    {
        Self { observer }
    }
}

impl<F: Send + Sync + 'static> AdvisorInfo for ObserveBlocks<F> {
    fn name(&self) -> &'static str {
        "observe-blocks"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl<F, O> StreamAdvisor for ObserveBlocks<F>
where
    F: Fn(&ChatRequest) -> O + Send + Sync + 'static,
    O: BlockObserver + Send + 'static,
{
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let mut observer = (self.observer)(&request);
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| chunk.observe(&mut observer)))
    }
}

impl<F> fmt::Debug for ObserveBlocks<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserveBlocks").finish_non_exhaustive()
    }
}
