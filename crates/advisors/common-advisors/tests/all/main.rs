//! Policies over streams, and retrieval in chains with the tool loop and memory. `tests/order/common_advisors` of the
//! workspace has the other advisors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod policy;
mod retrieval;
