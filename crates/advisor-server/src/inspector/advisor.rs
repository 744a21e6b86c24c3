//! `Inspected`: an advisor whose passes are recorded.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, CallRunner, ChatRequest, ChunkStream, PendingCalls, Placement, Result,
    StreamAdvisor, ToolSet, async_trait,
};

use super::journal::TurnJournal;
use super::pass::{Part, Pass};

/// An advisor whose passes are recorded.
pub(super) struct Inspected(pub(super) Arc<dyn StreamAdvisor>);

#[deny(clippy::missing_trait_methods)]
impl AdvisorInfo for Inspected {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }

    fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        self.0.on_loop_start(request)
    }

    fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        self.0.validate_tools(tools)
    }

    fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        self.0.pending_calls()
    }

    fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        self.0.call_runner()
    }
}

#[async_trait]
impl StreamAdvisor for Inspected {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let advisor = Arc::clone(&self.0);
        let Some(journal) = TurnJournal::from_turn(&request.turn) else {
            return advisor.advise_stream(request, next).await;
        };
        let mut pass = Pass::begin(journal, Part::Advisor(self.name().to_owned()));
        let stream = advisor.advise_stream(request, next).await?;
        // Observers see `Completed` after all work inside, that of this advisor included.
        Ok(stream.inspect_chunks(move |chunk| pass.see(chunk)))
    }
}
