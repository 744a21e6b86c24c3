//! Tools of servers, and a chain as the tool of one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::clone_on_ref_ptr,
    reason = "a test fails by panicking"
)]

mod client;
mod server;
