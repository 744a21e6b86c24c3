//! `Retry`: asks again before output, by a `Backoff` and within a time.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, Attempts, Backoff, ChatRequest, ChunkStream, Error, Phase, Placement, Result,
    StreamAdvisor, Waits, async_trait,
};
use tokio::time::Instant;

/// The time from the first attempt after which no further one begins.
const ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks the rest of the chain again after an error that can pass, as long as no part of the answer was shown.
///
/// [`Error::is_retryable`] decides about an error. The wait before an attempt is that of the [`Backoff`], or the one that
/// the provider asks for. An error after a part of the answer was shown, or after a tool has run, is returned as it is.
///
/// The models of this project retry by themselves, and their waits multiply with these. Switch theirs off
/// (`with_retries(Backoff::none())`), or keep this advisor for models without retries. It also asks again after errors of
/// the advisors inside it, such as a [`RateLimit`](crate::RateLimit). To ask another model, take
/// [`FallbackModel`](advisor_core::FallbackModel).
///
/// Its phase is [`Phase::ModelCall`]. Each attempt that reaches the model is a round with its own number, and one round
/// for the tool loop.
///
/// # Cancellation
/// Dropping the turn stops the attempt or the wait before it.
///
/// # Example
/// ```
/// use advisor_core::{Backoff, ChatClient, Error, ErrorKind};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::Retry;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> advisor_core::Result<()> {
/// let down = Answer::refused(Error::new(ErrorKind::Connection, "the network is down"));
/// let model = ScriptedModel::new([down, Answer::from_text("Back again.")]);
/// let retry = Retry { backoff: Backoff { retries: 3, ..Backoff::default() } };
/// let client = ChatClient::builder(model).advisor(retry).build()?;
/// assert_eq!(client.prompt().user("Hello?").call().await?.text(), "Back again.");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs, reason = "it has one setting")]
pub struct Retry {
    /// The number of further attempts, by default one, and the waits before them. Two minutes after the first attempt, no
    /// further one begins, and a wait that would end later is not begun. A running attempt is not interrupted.
    pub backoff: Backoff,
}

impl Default for Retry {
    fn default() -> Self {
        Self { backoff: Backoff { retries: 1, ..Backoff::default() } }
    }
}

impl AdvisorInfo for Retry {
    fn name(&self) -> &str {
        "retry"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl StreamAdvisor for Retry {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let end = Instant::now().checked_add(ATTEMPTS_TIMEOUT);
        let retries = Retries { request, next, waits: self.backoff.waits(), end };
        let first = retries.next.next_stream(retries.request.clone()).await;
        ChunkStream::from_attempts(first, retries).await
    }
}

/// The attempts that are left for a request.
struct Retries {
    request: ChatRequest,
    next: AdvisorChain,
    waits: Waits,
    /// The time after which no attempt begins.
    end: Option<Instant>,
}

impl Retries {
    /// Returns the time of the next attempt after this error, if there is one.
    fn time_of_next(&mut self, error: &Error) -> Option<Instant> {
        if !error.is_retryable() {
            return None;
        }
        let time = Instant::now().checked_add(self.waits.next_wait(error.retry_after())?)?;
        Some(time).filter(|time| self.end.is_none_or(|end| *time <= end))
    }
}

#[async_trait]
impl Attempts for Retries {
    fn can_follow(&self, error: &Error) -> bool {
        error.is_retryable()
    }

    async fn open_next(&mut self, mut error: Error) -> Result<ChunkStream> {
        while let Some(time) = self.time_of_next(&error) {
            tracing::info!(error = error.kind().as_str(), "an attempt failed; asking again");
            tokio::time::sleep_until(time).await;
            match self.next.next_stream(self.request.clone()).await {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }
}
