//! `Places`: the large requests that are worked on at once, and the bound of values in JSON.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::json::{MOST_VALUES, values};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// The works of one kind that are done at once. Further requests wait in their order.
///
/// One work is bounded in bytes, but a store reads whole turns for a page. So this bounds the memory of all requests, and
/// the threads that they work on.
const AT_ONCE: usize = 4;

/// The longest wait for a place.
const WAIT: Duration = Duration::from_secs(30);

/// The places for one kind of work.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Semaphore>);

/// The place of one request. Dropped, it leaves it to the next one.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<OwnedSemaphorePermit>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Places {
    /// Waits for a place, for a bounded time. The request has changed nothing yet: the client may send it again.
    ///
    /// # Errors
    /// If none is free in time.
    pub(crate) async fn begin(&self) -> Result<Place, Refusal> {
        let place = timeout(WAIT, Arc::clone(&self.0).acquire_owned()).await.ok();
        // The semaphore is never closed.
        place.and_then(Result::ok).map(|place| Place(Arc::new(place))).ok_or_else(Refusal::busy)
    }
}

impl Place {
    /// Does work off the async threads. It keeps the place until it ends, also if the request is dropped.
    ///
    /// # Errors
    /// If the work panics, or the runtime ends.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = Arc::clone(&self.0);
        let working = tokio::task::spawn_blocking(move || {
            let made = work();
            drop(place);
            made
        });
        working.await.map_err(|_| Refusal::internal())
    }
}

/// Checks whether JSON texts have few enough values together to be parsed.
///
/// # Errors
/// If they have more than a body may have.
pub(crate) fn check_values<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Refusal> {
    match texts.into_iter().map(values).sum::<usize>() > MOST_VALUES {
        true => Err(Refusal::too_many_values(MOST_VALUES)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn law_r1_wait_for_a_place_is_bounded() {
        let places = Places::default();
        let mut taken = Vec::new();
        while let Ok(place) = places.begin().await {
            taken.push(place);
        }
        let refused = places.begin().await.unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key("retry-after"));
        drop(taken);
        assert_eq!(places.begin().await.unwrap().work(|| 5).await.unwrap(), 5);
    }
}
