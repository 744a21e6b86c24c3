//! Calls that a person approves: suspended in one process, decided and finished in another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bounds;
mod decisions;
mod memory;
mod process;
mod tools;
