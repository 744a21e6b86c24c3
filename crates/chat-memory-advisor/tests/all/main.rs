//! Tests of memory in chains: stored entries, requests, and turns that do not end normally.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what the tests share fails by panicking"
)]

mod branches;
mod busy;
mod dropped;
mod every_point;
mod faults;
mod receipts;
mod resubmitted;
mod rounds;
mod store;
mod summaries;
mod support;
mod turn_pages;
mod turns;
mod views;
mod windows;
