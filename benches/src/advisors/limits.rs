//! Limits, the cache and the watch over a provider's cache.

use std::time::Duration;

use advisor_chain::advisors::{Budget, OnUnknownCost, PrefixWatch, RateLimit, ResponseCache, Retry};

use super::{Base, Row, Touch};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("Budget", "crates/common-advisors/README.md#budget", || {
            let ignore = OnUnknownCost::Ignore;
            Budget::for_each_tenant().with_tokens(1_000_000).with_on_unknown_cost(ignore)
        }),
        Row::new("Retry", "crates/common-advisors/README.md#retry-and-rate-limit", Retry::new)
            .touching(Touch::Looks)
            .waiting("after an error, the delay before the next attempt"),
        Row::new("RateLimit", "crates/common-advisors/README.md#retry-and-rate-limit", || {
            RateLimit::for_each_tenant().with_calls(1_000, Duration::from_secs(1)).with_concurrency(8)
        })
        .waiting("a permit, before the request"),
        Row::new("ResponseCache", "crates/common-advisors/README.md#response-cache", ResponseCache::new)
            .in_a(Base::Text, ", no hit")
            .touching(Touch::Works(60))
            .waiting("nothing; measures the answer at its end"),
        Row::new("PrefixWatch", "crates/common-advisors/README.md#prefix-watch", PrefixWatch::new),
    ]
}
