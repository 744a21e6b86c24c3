//! Tool calls in whole chains: the loop, approvals, calls that run at most once or at the client, typed answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod approval;
mod at_most_once;
mod client_side_calls;
mod entity;
mod text_tool_calls;
mod tool_loop;
