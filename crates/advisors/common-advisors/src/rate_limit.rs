//! `RateLimit`: calls in any span and at once. `Limiter` counts those of a tenant, `Window` those in a span.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Error, ErrorKind, Phase, Placement,
    Result, StreamAdvisor, Text, async_trait, wait_in_words,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::per_tenant::PerTenant;

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
    calls: Option<(usize, Duration)>,
    concurrency: Option<usize>,
    wait_timeout: Duration,
    limiters: Arc<PerTenant<Limiter>>,
}

impl RateLimit {
    /// Creates a limit for all calls together, without bounds yet.
    pub fn for_all() -> Self {
        Self::new(true)
    }

    /// Creates a limit for the calls of each tenant, without bounds yet. A turn without a conversation is one of the
    /// tenant `default`. Beyond 10,000 tenants with calls in the last span, others get an error of kind
    /// [`TooLarge`](ErrorKind::TooLarge).
    pub fn for_each_tenant() -> Self {
        Self::new(false)
    }

    fn new(is_shared: bool) -> Self {
        Self {
            name: "rate-limit".into(),
            calls: None,
            concurrency: None,
            wait_timeout: Duration::from_secs(60),
            limiters: Arc::new(PerTenant::new(is_shared)),
        }
    }

    /// Sets the maximum number of calls that begin in any span of this length. 0 counts as 1.
    pub fn with_calls(self, calls: usize, per: Duration) -> Self {
        Self { calls: Some((calls.max(1), per)), ..self.counting_anew() }
    }

    /// Sets the maximum number of calls at once. 0 counts as 1.
    pub fn with_concurrency(self, calls: usize) -> Self {
        Self { concurrency: Some(calls.max(1)), ..self.counting_anew() }
    }

    /// Sets the longest wait of a call, 60 seconds by default. With zero, a call begins at once or fails.
    pub fn with_wait_timeout(self, wait_timeout: Duration) -> Self {
        Self { wait_timeout, ..self }
    }

    /// Sets the name that [`explain`](AdvisorChain::explain) shows, `rate-limit` by default. It distinguishes several
    /// limits of a chain.
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns the same settings without counts: clones with other bounds do not count together.
    fn counting_anew(self) -> Self {
        Self { limiters: Arc::new(PerTenant::new(self.limiters.is_shared())), ..self }
    }

    fn limiter(&self, request: &ChatRequest) -> Result<Arc<Limiter>> {
        self.limiters.of(request, || Limiter::new(self.calls, self.concurrency), Limiter::is_idle)
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
        let limiter = self.limiter(&request)?;
        let place = limiter.acquire(self.wait_timeout).await?;
        let answer = next.next_stream(request).await?;
        // Also dropped with the stream, after an error or a drop. A limiter in use stays.
        Ok(answer.on_completed(|response| async move {
            drop((place, limiter));
            Ok(response)
        }))
    }
}

/// Counts the calls of one tenant, or of all.
#[derive(Debug)]
struct Limiter {
    concurrency: Option<Arc<Semaphore>>,
    window: Option<Window>,
}

impl Limiter {
    fn new(calls: Option<(usize, Duration)>, concurrency: Option<usize>) -> Self {
        let semaphore = |calls: usize| Arc::new(Semaphore::new(calls.min(Semaphore::MAX_PERMITS)));
        Self {
            concurrency: concurrency.map(semaphore),
            window: calls.map(|(calls, per)| Window::new(calls, per)),
        }
    }

    /// Checks whether no earlier call counts any more. The caller knows that none is running.
    fn is_idle(&self) -> bool {
        self.window.as_ref().is_none_or(Window::is_empty)
    }

    /// Waits until a call may begin, and returns its place among those at once.
    ///
    /// # Errors
    /// Of kind [`RateLimited`](ErrorKind::RateLimited) if it may not within `longest`.
    async fn acquire(&self, longest: Duration) -> Result<Option<OwnedSemaphorePermit>> {
        let end = Instant::now().checked_add(longest);
        // A wait that is known to be too long is not begun.
        if let Some(wait) = self.window.as_ref().map(Window::time_left).filter(|wait| *wait > longest) {
            return Err(refusal(Some(wait)));
        }
        // The place among those at once comes first: a call begins as soon as the window lets it.
        let place = match &self.concurrency {
            Some(places) => {
                let place = within(end, Arc::clone(places).acquire_owned()).await;
                let at_least = || self.window.as_ref().map(Window::time_left).filter(|time| !time.is_zero());
                Some(place.and_then(|place| place.ok()).ok_or_else(|| refusal(at_least()))?)
            }
            None => None,
        };
        if let Some(window) = &self.window {
            window.begin(end).await.map_err(|wait| refusal(Some(wait)))?;
        }
        Ok(place)
    }
}

fn refusal(retry_after: Option<Duration>) -> Error {
    let when = retry_after.map_or_else(String::new, |wait| format!("; ask again in {}", wait_in_words(wait)));
    let message =
        format!("the rate limit of this chain leaves no room for the call within the longest wait{when}");
    Error::new(ErrorKind::RateLimited { retry_after }, message)
}

/// Awaits `work`, but not after `end`.
async fn within<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

/// Lets at most a number of calls begin in any span of a length. A token bucket lets almost twice as many
/// begin.
#[derive(Debug)]
struct Window {
    calls: usize,
    per: Duration,
    /// The times at which the last calls began, at most `calls`.
    begun: Mutex<VecDeque<Instant>>,
    /// Its holder is the call that begins next. The others wait in their order.
    next: Semaphore,
}

impl Window {
    fn new(calls: usize, per: Duration) -> Self {
        Self { calls, per, begun: Mutex::default(), next: Semaphore::new(1) }
    }

    /// Waits until a call may begin, and counts it. A call that is dropped meanwhile does not count.
    ///
    /// # Errors
    /// The time until a call may begin, if that is after `end`.
    async fn begin(&self, end: Option<Instant>) -> Result<(), Duration> {
        let turn = within(end, self.next.acquire()).await;
        let time = self.free_at();
        if turn.is_none() || end.is_some_and(|end| time > end) {
            return Err(self.time_left());
        }
        sleep_until(time).await;
        let mut begun = self.begun();
        if begun.len() >= self.calls {
            begun.pop_front();
        }
        begun.push_back(Instant::now());
        Ok(())
    }

    /// Returns the time until a call may begin, apart from those that wait.
    fn time_left(&self) -> Duration {
        self.free_at().saturating_duration_since(Instant::now())
    }

    /// Checks whether no call counts any more.
    fn is_empty(&self) -> bool {
        let last = self.begun().back().copied();
        last.is_none_or(|last| last.elapsed() >= self.per)
    }

    /// Returns the time from which a call may begin.
    fn free_at(&self) -> Instant {
        let now = Instant::now();
        let begun = self.begun();
        let oldest = begun.front().filter(|_| begun.len() >= self.calls);
        // A span beyond the clock's range never ends; a year stands for it.
        let far = || now + Duration::from_secs(365 * 24 * 60 * 60);
        oldest.map_or(now, |oldest| oldest.checked_add(self.per).unwrap_or_else(far).max(now))
    }

    fn begun(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        // Code under the lock never leaves the times inconsistent.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
