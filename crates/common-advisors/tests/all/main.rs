//! Retrieval of documents and of past turns, in chains with the tool loop and memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod past_turns;
mod retrieval;
