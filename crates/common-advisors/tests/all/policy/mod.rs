//! Policies, guards and replacements over streams, without a tool loop.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod guard;
mod pieces;
mod policy;
mod replace;
