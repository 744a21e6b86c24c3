//! Large bodies of requests: the check of their values, and the places of those that are parsed.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::Error;
use advisor_core::json::{MOST_VALUES, values};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::refusal::Refusal;

/// The bodies that are parsed at once. Further requests wait in their order, at most for this time.
const AT_ONCE: usize = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The places of large bodies that are parsed.
#[derive(Debug, Clone)]
pub(crate) struct LargeBodies(Arc<Semaphore>);

impl Default for LargeBodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl LargeBodies {
    /// Parses a body off the async threads, when there is a place. The place is kept until the end, also if the request is
    /// dropped.
    ///
    /// # Errors
    /// If no place becomes free in time.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = timeout(LONGEST_WAIT, Arc::clone(&self.0).acquire_owned()).await;
        let place = place.map_err(|_| Refusal::busy())?;
        let parsing = tokio::task::spawn_blocking(move || {
            let parsed = parse();
            drop(place);
            parsed
        });
        parsing.await.map_err(|error| Refusal::from(&Error::advisor(error)))
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
        let bodies = LargeBodies::default();
        let places = Arc::clone(&bodies.0).acquire_many_owned(4).await.unwrap();
        let refused = bodies.parse(|| ()).await.unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key("retry-after"));
        drop(places);
        assert_eq!(bodies.parse(|| 5).await.unwrap(), 5);
    }
}
