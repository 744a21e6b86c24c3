//! `Limiter` and `Permit`: the right to one call, with the longest wait.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Error, ErrorKind, Result, wait_in_words};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::window::{Window, within};

/// The bounds of a rate limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) calls: Option<(usize, Duration)>,
    pub(super) concurrency: Option<usize>,
}

/// Counts the calls of one tenant, or of all.
#[derive(Debug)]
pub(super) struct Limiter {
    concurrency: Option<Arc<Semaphore>>,
    window: Option<Window>,
}

/// The right to one call, given back when it is dropped.
pub(super) struct Permit {
    _concurrency: Option<OwnedSemaphorePermit>,
    /// A limiter in use stays.
    _limiter: Arc<Limiter>,
}

impl Limiter {
    pub(super) fn new(bounds: Bounds) -> Self {
        let semaphore = |calls: usize| Arc::new(Semaphore::new(calls.min(Semaphore::MAX_PERMITS)));
        Self {
            concurrency: bounds.concurrency.map(semaphore),
            window: bounds.calls.map(|(calls, per)| Window::new(calls, per)),
        }
    }

    /// Checks whether no earlier call counts any more. The caller knows that none is running.
    pub(super) fn is_idle(&self) -> bool {
        self.window.as_ref().is_none_or(Window::is_empty)
    }

    /// Waits until a call may begin.
    ///
    /// # Errors
    /// Of kind [`RateLimited`](ErrorKind::RateLimited) if it may not within `longest`.
    pub(super) async fn acquire(self: Arc<Self>, longest: Duration) -> Result<Permit> {
        let end = Instant::now().checked_add(longest);
        // A wait that is known to be too long is not begun.
        if let Some(wait) = self.window.as_ref().map(Window::time_left).filter(|wait| *wait > longest) {
            return Err(refusal(Some(wait)));
        }
        // The place among those at once comes first: a call begins as soon as the window lets it.
        let concurrency = match &self.concurrency {
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
        Ok(Permit { _concurrency: concurrency, _limiter: self })
    }
}

fn refusal(retry_after: Option<Duration>) -> Error {
    let when = retry_after.map_or_else(String::new, |wait| format!("; ask again in {}", wait_in_words(wait)));
    let message =
        format!("the rate limit of this chain leaves no room for the call within the longest wait{when}");
    Error::new(ErrorKind::RateLimited { retry_after }, message)
}
