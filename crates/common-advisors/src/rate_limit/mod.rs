//! `RateLimit`: the advisor and its settings.

mod limiter;
mod window;

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Phase, Placement, Result,
    StreamAdvisor, Text, async_trait,
};

use self::limiter::{Bounds, Limiter};
use crate::per_tenant::{MOST_TENANTS, PerTenant, tenant_of};

/// Limits the calls of the model: those in a time, and those at once.
///
/// A call that has to wait is served in the order of arrival. If it would wait too long, it fails with kind
/// [`RateLimited`](advisor_core::ErrorKind::RateLimited). Its delay is the time until a call may begin, as far as known;
/// how long other calls run is not known.
///
/// Its position is [beside the model](advisor_core::AdvisorRole::BesideModel). A call counts until its answer is complete, fails or is
/// dropped, and no longer while the tools of the answer run. So a tool may run a turn of the same chain, also with one
/// call at once. A model's own retries are not visible here.
///
/// Clones count together. All counts are in memory.
///
/// # Cancellation
/// A turn that is dropped while it waits takes no place. One that is dropped later gives its place back.
///
/// # Example
/// ```
/// use std::time::Duration;
///
/// use advisor_core::{ChatClient, ErrorKind};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::RateLimit;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> advisor_core::Result<()> {
/// let minute = Duration::from_secs(60);
/// let limit = RateLimit::for_each_tenant().with_calls(1, minute).with_concurrency(4).with_wait_timeout(Duration::ZERO);
/// let model = ScriptedModel::new([Answer::from_text("First.")]);
/// let client = ChatClient::builder(model).advisor(limit).build()?;
/// assert_eq!(client.prompt().user("One.").call().await?.text(), "First.");
///
/// let error = client.prompt().user("Two.").call().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: Some(minute) });
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct RateLimit {
    name: Text,
    scope: Scope,
    bounds: Bounds,
    wait_timeout: Duration,
    limiters: Arc<PerTenant<Limiter>>,
}

/// The calls that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Tenant,
}

impl RateLimit {
    /// Creates a limit for all calls together, without bounds yet.
    pub fn for_all() -> Self {
        Self::new(Scope::All)
    }

    /// Creates a limit for the calls of each tenant, without bounds yet. A turn without a conversation is one of the
    /// tenant `default`.
    pub fn for_each_tenant() -> Self {
        Self::new(Scope::Tenant)
    }

    fn new(scope: Scope) -> Self {
        Self {
            name: "rate-limit".into(),
            scope,
            bounds: Bounds::default(),
            wait_timeout: Duration::from_secs(60),
            limiters: Arc::new(PerTenant::new(MOST_TENANTS)),
        }
    }

    /// Sets the maximum number of calls that begin in any span of this length. 0 counts as 1.
    pub fn with_calls(self, calls: usize, per: Duration) -> Self {
        self.with_bounds(|bounds| bounds.calls = Some((calls.max(1), per)))
    }

    /// Sets the maximum number of calls at once. 0 counts as 1.
    pub fn with_concurrency(self, calls: usize) -> Self {
        self.with_bounds(|bounds| bounds.concurrency = Some(calls.max(1)))
    }

    /// Sets the longest wait of a call, 60 seconds by default. With zero, a call begins at once or fails.
    pub fn with_wait_timeout(self, wait_timeout: Duration) -> Self {
        Self { wait_timeout, ..self }
    }

    /// Sets the maximum number of tenants, 10,000 by default. Those without calls in the last span are removed first.
    /// Further tenants get an error of kind [`TooLarge`](advisor_core::ErrorKind::TooLarge).
    pub fn with_tenants(self, tenants: usize) -> Self {
        Self { limiters: Arc::new(PerTenant::new(tenants)), ..self }
    }

    /// Sets the name that [`explain`](AdvisorChain::explain) shows, `rate-limit` by default. It distinguishes several
    /// limits of a chain.
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Changes the bounds, for calls from now on.
    fn with_bounds(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(&mut self.bounds);
        let limiters = Arc::new(self.limiters.emptied());
        Self { limiters, ..self }
    }

    fn limiter(&self, request: &ChatRequest) -> Result<Arc<Limiter>> {
        let tenant = match self.scope {
            Scope::All => "",
            Scope::Tenant => tenant_of(request),
        };
        self.limiters.of(tenant, || Limiter::new(self.bounds), Limiter::is_idle)
    }
}

impl AdvisorInfo for RateLimit {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }
    }
}

#[async_trait]
impl StreamAdvisor for RateLimit {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        if request.turn.resolves_tools() {
            return next.next_stream(request).await;
        }
        let permit = self.limiter(&request)?.acquire(self.wait_timeout).await?;
        let answer = next.next_stream(request).await?;
        // Also dropped with the stream, after an error or a drop.
        Ok(answer.on_completed(|response| async move {
            drop(permit);
            Ok(response)
        }))
    }
}
