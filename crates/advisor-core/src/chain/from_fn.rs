//! `from_fn` and `FromFn`: an advisor made of a closure.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Placement, Result, StreamAdvisor};

/// Creates an advisor from a closure; see [`StreamAdvisor`] for its contract.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatRequest, from_fn};
///
/// let polite = from_fn("polite", |request: ChatRequest, next: AdvisorChain| async move {
///     next.next_stream(request.with_system("Be polite.")).await
/// });
/// ```
pub fn from_fn<F, Fut>(name: impl Into<String>, advise: F) -> FromFn<F>
where
    F: Fn(ChatRequest, AdvisorChain) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChunkStream>> + Send + 'static,
{
    FromFn { name: name.into(), placement: Placement::default(), advise }
}

/// The advisor that [`from_fn`] creates.
#[derive(Clone)]
pub struct FromFn<F> {
    name: String,
    placement: Placement,
    advise: F,
}

impl<F> FromFn<F> {
    /// Sets the placement.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }
}

impl<F: Send + Sync + 'static> AdvisorInfo for FromFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement
    }
}

#[async_trait]
impl<F, Fut> StreamAdvisor for FromFn<F>
where
    F: Fn(ChatRequest, AdvisorChain) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChunkStream>> + Send + 'static,
{
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        (self.advise)(request, next).await
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("name", &self.name).finish_non_exhaustive()
    }
}
