//! Reading of stored conversations: the requests that take most memory and time.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::Error;
use chat_memory_advisor::store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The conversations that are read at once. Further requests wait in their order.
///
/// A page is bounded in bytes, but the store reads whole turns for it. So this bounds the memory of all requests, and the
/// threads that they work on.
const AT_ONCE: usize = 4;

/// The longest wait for a place.
const WAIT: Duration = Duration::from_secs(30);

/// The places of requests that read stored conversations.
#[derive(Debug, Clone)]
pub(crate) struct StoredReads(Arc<Semaphore>);

/// The place of one request. Dropped, it leaves it to the next one.
#[derive(Debug, Clone)]
pub(crate) struct StoredRead(Arc<OwnedSemaphorePermit>);

impl Default for StoredReads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl StoredReads {
    /// Waits for a place.
    ///
    /// # Errors
    /// If none is free in time.
    pub(crate) async fn begin(&self) -> Result<StoredRead, StoreError> {
        match timeout(WAIT, Arc::clone(&self.0).acquire_owned()).await {
            Ok(Ok(place)) => Ok(StoredRead(Arc::new(place))),
            // The semaphore is never closed.
            _ => Err(StoreError::unavailable("too many requests read conversations at once")),
        }
    }
}

impl StoredRead {
    /// Does work on what was read, off the async threads. It keeps the place until it ends, also if the request is dropped.
    ///
    /// # Errors
    /// If the work panics, or the runtime ends.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let place = Arc::clone(&self.0);
        let working = tokio::task::spawn_blocking(move || {
            let made = work();
            drop(place);
            made
        });
        working.await.map_err(Error::advisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_for_a_bounded_time() {
        let reads = StoredReads::default();
        let mut places = Vec::new();
        for _ in 0..AT_ONCE {
            places.push(reads.begin().await.unwrap());
        }
        let refused = reads.begin().await;
        assert!(matches!(refused, Err(StoreError::Unavailable { retryable: true, .. })), "{refused:?}");
        places.pop();
        reads.begin().await.unwrap();
    }
}
