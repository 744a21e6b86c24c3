//! Large bodies of requests: the check of their values, and the places of those that are parsed.

use advisor_core::json::{MOST_VALUES, values};

use crate::places::Places;
use crate::refusal::Refusal;

/// Parses a body off the async threads, when there is a place. The place is kept until the end, also if the request is
/// dropped.
///
/// # Errors
/// If no place becomes free in time.
pub(crate) async fn parse_elsewhere<T: Send + 'static>(
    places: &Places,
    parse: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let place = places.begin().await?;
    place.work(parse).await.map_err(|error| Refusal::from(&error))
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
        let refused = parse_elsewhere(&places, || ()).await.unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key("retry-after"));
        drop(taken);
        assert_eq!(parse_elsewhere(&places, || 5).await.unwrap(), 5);
    }
}
