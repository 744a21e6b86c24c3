//! The models of Chat Completions, of Responses and of embeddings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod conformance;
mod embeddings;
mod http;
mod properties;
mod recordings;
mod replays;
mod responses;
mod secrets;
