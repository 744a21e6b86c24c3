//! Reading of stored conversations: the requests that take most memory and time.

use std::sync::Arc;

use advisor_core::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The conversations that are read at once. Further requests wait in their order.
///
/// A page is bounded in bytes, but the store reads whole turns for it. So this bounds the memory of all requests, and the
/// threads that they work on.
const AT_ONCE: usize = 4;

/// The places of requests that read stored conversations.
#[derive(Debug, Clone)]
pub(crate) struct StoredReads(Arc<Semaphore>);

/// The place of one request. Dropped, it leaves it to the next one.
#[derive(Debug, Clone)]
pub(crate) struct StoredRead(Option<Arc<OwnedSemaphorePermit>>);

impl Default for StoredReads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl StoredReads {
    /// Waits for a place.
    pub(crate) async fn begin(&self) -> StoredRead {
        // The semaphore is never closed.
        StoredRead(Arc::clone(&self.0).acquire_owned().await.ok().map(Arc::new))
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
        let place = self.0.clone();
        let working = tokio::task::spawn_blocking(move || {
            let made = work();
            drop(place);
            made
        });
        working.await.map_err(Error::advisor)
    }
}
