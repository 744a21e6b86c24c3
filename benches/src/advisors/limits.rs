//! Limits, the cache and the watch over a provider's cache.

use std::time::Duration;

use advisor_chain::advisors::{Budget, RateLimit, ResponseCache, Retry};

use super::{Base, Row, Touch};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("Budget", || Budget::for_each_tenant().with_tokens(1_000_000).ignoring_unknown_cost()),
        Row::new("Retry", Retry::default).touching(Touch::Looks),
        Row::new("RateLimit", || {
            RateLimit::for_each_tenant().with_calls(1_000, Duration::from_secs(1)).with_concurrency(8)
        }),
        Row::new("ResponseCache", ResponseCache::default)
            .in_a(Base::Text, ", no hit")
            .touching(Touch::Works(60)),
    ]
}
