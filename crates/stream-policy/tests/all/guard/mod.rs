//! Guards on input and on output: at every split of the text, and in small chains.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod blocks;
mod input;
mod output;
#[path = "../pieces/mod.rs"]
mod pieces;
