//! Calls in text: the parsers, the segments, and the description of tools.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod description;
mod parsers;
mod segments;
