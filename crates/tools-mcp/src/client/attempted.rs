//! `Attempted`: a value that one attempt makes for all that wait; a failure is remembered for a while.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use advisor_core::{Error, ErrorKind, Result};
use tokio::sync::OnceCell;
use tokio::time::Instant;

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

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Attempted<T> {
    fn default() -> Self {
        Self { value: OnceCell::new(), failure: Mutex::new(None) }
    }
}
