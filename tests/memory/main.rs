//! Memory in whole chains: what is sent and stored, on every store, through failures and repeated turns.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod backends;
mod export;
mod failure;
mod finish_turn;
mod memory_consistency;
mod resubmitted_turns;
mod resumed_turns;
mod windows;
