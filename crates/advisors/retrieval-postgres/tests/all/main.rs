//! The store against a real server, if there is one.
//!
//! `ADVISOR_PGVECTOR_URL` names a database with the extension `vector`, in which the user may make schemas and roles;
//! with `ADVISOR_REQUIRE_SERVERS=1` its absence fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod conformance;
mod failures;
mod index;
mod setup;
mod support;
mod updates;
