//! Processes that are really killed, and processes that race: with conversations in a file, in PostgreSQL and in Redis.
//!
//! This program runs itself. The test `child::the_child` is what a child runs; where nobody asks for a job, it does
//! nothing. A child tells its parent what happened, a line per [`Report`](child::Report), before anything else can
//! happen; what a killed child had told is still in the pipe. Nothing here waits for a time to pass: a child stands
//! at a point until it is killed, and a conversation whose holder was killed is waited for by the library.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chain;
mod child;
mod conversation;
mod kills;
mod places;
mod plan;
mod race;
mod sleepers;
mod turn;
mod witness;
