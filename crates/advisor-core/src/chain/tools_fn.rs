//! `tools_fn` and `ToolsFn`: an advisor that adds a set of tools to each request.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Phase, Placement, Result, StreamAdvisor, ToolSet,
};

/// Creates an advisor that adds tools to each request. Examples are those that a user may use, and those of a server
/// that change while it runs.
///
/// `tools` receives the request and returns the tools. It is called once per round. If it returns clones of one set, the
/// serialised form of the tools is kept, too. To limit the time of slow sources, keep their tools and refresh them beside
/// the turn.
///
/// Its phase is [`Phase::Round`].
///
/// # Errors
/// An error of `tools` ends the turn before the model is asked. So does a tool with the name of one that the request has,
/// unless one of them is [foreign](crate::ToolDefinition::is_foreign); the text names it. [`ToolSet::prefixed`] keeps sets
/// apart.
///
/// # Example
/// ```
/// use advisor_core::{ChatRequest, ToolSet, tools_fn};
///
/// /// The tools of a tenant, from a registry of the application.
/// async fn tools_of(tenant: Option<&str>) -> advisor_core::Result<ToolSet> {
/// #   let _ = tenant;
///     Ok(ToolSet::new())
/// }
///
/// let tools = tools_fn("tenant-tools", |request: ChatRequest| async move {
///     tools_of(request.conversation.as_ref().map(|conversation| conversation.tenant())).await
/// });
/// ```
pub fn tools_fn<F, Fut>(name: impl Into<String>, tools: F) -> ToolsFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolSet>> + Send + 'static,
{
    ToolsFn { name: name.into(), placement: Placement::new(Phase::Round), tools, last: Mutex::default() }
}

/// The advisor that [`tools_fn`] creates.
pub struct ToolsFn<F> {
    name: String,
    placement: Placement,
    tools: F,
    last: Mutex<Option<Merged>>,
}

/// The sets that were merged last. They are kept, so that a turn of many rounds serialises its tools once.
struct Merged {
    given: ToolSet,
    added: ToolSet,
    all: ToolSet,
}

impl<F> ToolsFn<F> {
    /// Sets the placement.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    fn merged(&self, given: ToolSet, added: ToolSet) -> Result<ToolSet> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.given.is_same(&given)
            && last.added.is_same(&added)
        {
            return Ok(last.all.clone());
        }
        let all = given.clone().merged(&added)?;
        *last = Some(Merged { given, added, all: all.clone() });
        Ok(all)
    }
}

impl<F: Send + Sync + 'static> AdvisorInfo for ToolsFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement
    }
}

#[async_trait]
impl<F, Fut> StreamAdvisor for ToolsFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolSet>> + Send + 'static,
{
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let added = (self.tools)(request.clone()).await?;
        let tools = match request.tools.is_empty() {
            true => added,
            false => self.merged(request.tools.clone(), added)?,
        };
        next.next_stream(request.with_tools(tools)).await
    }
}

impl<F> fmt::Debug for ToolsFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolsFn").field("name", &self.name).finish_non_exhaustive()
    }
}
