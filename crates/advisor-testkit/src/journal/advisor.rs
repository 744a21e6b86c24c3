//! `JournalAdvisor`: an advisor that records the work of another one.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, CallRunner, ChatRequest, ChunkStream, PendingCalls, Placement, Result,
    StreamAdvisor, ToolSet,
};
use async_trait::async_trait;

use super::Journal;
use super::passing::{Link, Passing};

/// An advisor around another one, which records its work in a [`Journal`].
///
/// `advisor.enter NAME` is recorded when it is called. `advisor.first_chunk NAME r1` and `advisor.completed NAME r1`
/// are recorded when it passes a chunk or the completion outwards, so after its own work on them. `advisor.drop NAME`
/// is recorded if it fails or is dropped before. The completion has the number of chunks.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatClient, ChatRequest, from_fn};
/// use advisor_testkit::{Answer, Journal, JournalAdvisor, JournalModel, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let pass = from_fn("pass", |request: ChatRequest, next: AdvisorChain| async move { next.next_stream(request).await });
/// let journal = Journal::new();
/// let model = JournalModel::new(ScriptedModel::new([Answer::from_text("Hi")]), &journal);
/// let client = ChatClient::builder(model).advisor(JournalAdvisor::new(pass, &journal)).build()?;
/// client.prompt().user("Hello").call().await?;
/// journal.assert_order(&["advisor.enter pass", "model.ask r1", "model.end r1", "advisor.completed pass r1"]);
/// # Ok(()) }
/// ```
pub struct JournalAdvisor<A> {
    inner: Arc<A>,
    journal: Journal,
}

impl<A: StreamAdvisor> JournalAdvisor<A> {
    /// Wraps an advisor. It keeps its name and its placement.
    pub fn new(inner: A, journal: &Journal) -> Self {
        Self { inner: Arc::new(inner), journal: journal.clone() }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<A: StreamAdvisor> AdvisorInfo for JournalAdvisor<A> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        self.inner.on_loop_start(request)
    }

    fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        self.inner.validate_tools(tools)
    }

    fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        self.inner.pending_calls()
    }

    fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        self.inner.call_runner()
    }
}

#[async_trait]
impl<A: StreamAdvisor> StreamAdvisor for JournalAdvisor<A> {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let mut passing = Passing::begin(&self.journal, Link::Advisor { name: self.name().to_owned() });
        let stream = Arc::clone(&self.inner).advise_stream(request, next).await?;
        Ok(stream.inspect_chunks(move |chunk| passing.see(chunk)))
    }
}

impl<A> fmt::Debug for JournalAdvisor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalAdvisor").finish_non_exhaustive()
    }
}
