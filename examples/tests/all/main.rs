//! The examples as programs: what README shows, and services with real clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cache;
mod http_service;
mod readme;
