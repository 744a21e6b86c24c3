//! The testkit: its suites pass what is right and find each fault, and its servers and recordings do as they say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(feature = "advisor-conformance")]
mod advisor_conformance;
#[cfg(feature = "conformance")]
mod conformance;
#[cfg(feature = "crash")]
mod crash;
#[cfg(feature = "crash")]
mod crash_refused;
mod made_up_provider;
mod recordings;
mod replay;
