//! The advisors at every await point of the crash kit. Its answers have no token counts, so the budget ignores that.

use advisor_chain::advisors::{Budget, RateLimit, Retry};
use advisor_chain::chain::Backoff;
use advisor_conformance::crash::Leaves;
use advisor_conformance::{crash_points_of_advisor, crash_points_of_chain};
use advisor_testkit::WordEmbeddings;
use advisor_tests::prelude::*;

fn budget() -> Budget {
    Budget::for_each_turn().with_tokens(1_000).ignoring_unknown_cost()
}

fn retry() -> Retry {
    let (first, longest) = (Duration::ZERO, Duration::ZERO);
    Retry { backoff: Backoff { retries: 1, first, longest, ..Backoff::default() } }
}

fn rate_limit() -> RateLimit {
    RateLimit::for_all().with_calls(1_000, Duration::from_secs(1)).with_concurrency(1)
}

macro_rules! crash_points_of {
    ($($name:ident: $advisor:expr,)*) => {$(
        mod $name {
            use super::*;
            crash_points_of_advisor!($advisor);
        }
    )*};
}

crash_points_of! {
    a_budget: budget(),
    a_retry: retry(),
    a_rate_limit: rate_limit(),
    a_cache: ResponseCache::default(),
    a_cache_with_similar_questions: ResponseCache::default().with_similar(WordEmbeddings::new(), 0.9),
}

mod all_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client =
            leaves.client().advisor(super::budget()).advisor(super::retry()).advisor(super::rate_limit());
        let client = client.advisor(super::ResponseCache::default()).advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}
