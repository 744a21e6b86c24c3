//! The model of Ollama's API.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod conformance;
mod http;
mod recordings;
