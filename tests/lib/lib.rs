//! What the tests of the workspace share:
//!
//! | module | what it has |
//! |---|---|
//! | [`prelude`] | the names that nearly every test uses |
//! | [`scene`] | a client with a tool, memory and a journal, and what came of its turns |
//! | [`reading`] | turns that are read to their end or to a place, checked by the laws of the stream |
//! | [`lines`] | messages as lines of text |
//! | [`tools`], [`editors`] | tools and editors of chunks |
//! | [`stores`] | all stores, and servers that may be absent |
//! | [`matrix`] | one turn in every combination of memory, mode, rounds and calls |
//! | [`log`] | the lines of the log |
#![allow(missing_debug_implementations, reason = "nobody prints them")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod editors;
pub mod lines;
pub mod log;
pub mod matrix;
pub mod prelude;
pub mod reading;
pub mod scene;
pub mod stores;
pub mod tools;
