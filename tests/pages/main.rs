//! The pages and the laws: links lead somewhere, every law has a test and a break.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod laws;
mod pages;
