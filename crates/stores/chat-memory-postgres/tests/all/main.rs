//! The store against a real server, if there is one.
//!
//! `ADVISOR_POSTGRES_URL` names a database, such as `postgres://user@127.0.0.1:5432/database`, in which the
//! user may make schemas; with `ADVISOR_REQUIRE_SERVERS=1` its absence fails.

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
mod leases;
mod setup;
mod sharing;
mod support;
