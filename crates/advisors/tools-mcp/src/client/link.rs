//! `Link`: a server and its current connection; a lost one is replaced at the next use. `Attempted`: a value that one
//! attempt makes for all that wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{Error, ErrorKind, Result, Text};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::connection::Connection;
use super::server::McpServer;

/// A server and its current connection. A lost connection is replaced at the next use.
pub(super) struct Link {
    pub(super) server: Arc<McpServer>,
    /// The origin of its tools.
    pub(super) origin: Text,
    current: Mutex<Arc<Attempted<Arc<Connection>>>>,
}

impl Link {
    pub(super) fn new(server: McpServer) -> Self {
        Self { origin: server.origin(), server: Arc::new(server), current: Mutex::default() }
    }

    /// Returns the connection. Connects if there is none; all that ask meanwhile get the outcome of one attempt.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>> {
        let current = self.current();
        current.get(Connection::open(Arc::clone(&self.server))).await
    }

    fn current(&self) -> Arc<Attempted<Arc<Connection>>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.made().is_some_and(|connection| connection.is_lost()) {
            *current = Arc::default();
        }
        Arc::clone(&current)
    }

    /// Removes the connection, if there is one.
    pub(super) fn take(&self) -> Option<Arc<Connection>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *current).made().cloned()
    }
}

/// The shortest time for which a failure is remembered.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest time for which a failure is remembered.
const LONGEST: Duration = Duration::from_secs(30);

/// A value that an attempt makes. All that ask meanwhile get its outcome, also if it fails.
///
/// A failure is remembered for as long as its attempt took, between 1 and 30 seconds. Otherwise the turns
/// would wait for separate timeouts, in sequence.
pub(super) struct Attempted<T> {
    value: OnceCell<T>,
    failure: Mutex<Option<Failure>>,
}

struct Failure {
    kind: ErrorKind,
    text: String,
    until: Instant,
}

impl<T: Clone + Send + Sync> Attempted<T> {
    /// Returns the value, or the outcome of an attempt to make it.
    ///
    /// # Cancellation
    /// Dropping the future ends its attempt; another one that waits begins its own.
    pub(super) async fn get(&self, make: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let attempt = || async {
            // Here each one that waited comes in turn.
            if let Some(error) = self.remembered() {
                return Err(error);
            }
            let begun = Instant::now();
            make.await.inspect_err(|error| self.remember(error, begun.elapsed()))
        };
        self.value.get_or_try_init(attempt).await.cloned()
    }

    /// Returns the value if there is one.
    pub(super) fn made(&self) -> Option<&T> {
        self.value.get()
    }

    fn remember(&self, error: &Error, took: Duration) {
        let until = Instant::now() + took.clamp(SHORTEST, LONGEST);
        *self.failure() = Some(Failure { kind: error.kind(), text: error.to_string(), until });
    }

    fn remembered(&self) -> Option<Error> {
        let failure = self.failure();
        let failure = failure.as_ref().filter(|failure| Instant::now() < failure.until)?;
        Some(Error::new(failure.kind, failure.text.clone()))
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Attempted<T> {
    fn default() -> Self {
        Self { value: OnceCell::new(), failure: Mutex::new(None) }
    }
}
