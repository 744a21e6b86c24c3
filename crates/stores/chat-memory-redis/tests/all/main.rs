//! The store against a real server, if there is one.
//!
//! `ADVISOR_REDIS_URL` names a server, such as `redis://127.0.0.1:6379/`, and `ADVISOR_REDIS_CLUSTER_URL` a node
//! that has all slots of a cluster; with `ADVISOR_REQUIRE_SERVERS=1` the absence of either fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod conformance;
mod costs;
mod crash_points;
mod failures;
mod index;
mod leases;
mod relay;
mod setup;
mod sharing;
mod stepping;
mod support;
