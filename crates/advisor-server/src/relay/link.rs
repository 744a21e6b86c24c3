//! `RelayLink`: the relay with a timeout for each call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, Result, TurnId};
use tokio::time::timeout;

use super::{Appended, Begun, RelayError, RunBatch, RunPage, TurnRelay, TurnRun};

/// The timeout of a call that no request waits for.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection of a server to its relay. Each call has a timeout, whatever the relay does.
#[derive(Clone)]
pub(crate) struct RelayLink {
    relay: Arc<dyn TurnRelay>,
    timeout: Duration,
}

impl RelayLink {
    pub(crate) fn new(relay: Arc<dyn TurnRelay>, timeout: Duration) -> Self {
        Self { relay, timeout }
    }

    /// Returns the link for calls that no request waits for.
    pub(crate) fn with_background_timeout(&self) -> Self {
        Self { relay: Arc::clone(&self.relay), timeout: BACKGROUND_TIMEOUT }
    }

    pub(crate) async fn begin(&self, run: &TurnRun) -> Result<Begun> {
        self.bounded(self.relay.begin(run)).await
    }

    pub(crate) async fn release(&self, run: &TurnRun) -> Result<()> {
        self.bounded(self.relay.release(run)).await
    }

    pub(crate) async fn append(&self, run: &TurnRun, batch: &RunBatch) -> Result<Appended> {
        self.bounded(self.relay.append(run, batch)).await
    }

    pub(crate) async fn read(
        &self,
        conversation: &ConversationKey,
        turn: &TurnId,
        from: u64,
    ) -> Result<Option<RunPage>> {
        self.bounded(self.relay.read(conversation, turn, from)).await
    }

    pub(crate) async fn running(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>> {
        self.bounded(self.relay.running(conversation)).await
    }

    pub(crate) async fn stop(&self, conversation: &ConversationKey, turn: &TurnId) -> Result<()> {
        self.bounded(self.relay.stop(conversation, turn)).await
    }

    pub(crate) async fn forget(&self, conversation: &ConversationKey) -> Result<()> {
        self.bounded(self.relay.forget(conversation)).await
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, RelayError>>) -> Result<T> {
        let late = |_| RelayError::new("it did not answer in time");
        Ok(timeout(self.timeout, call).await.map_err(late).flatten()?)
    }
}

impl fmt::Debug for RelayLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayLink").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
