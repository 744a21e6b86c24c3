//! The suites pass what is right and find each fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(feature = "advisor")]
mod advisor_conformance;
#[cfg(feature = "provider")]
mod conformance;
#[cfg(feature = "crash")]
mod crash;
#[cfg(feature = "crash")]
mod crash_refused;
#[cfg(feature = "provider")]
mod made_up_provider;
#[cfg(feature = "store")]
mod store_suite;
