//! The model of Gemini's API.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod conformance;
mod http;
mod recordings;
mod replays;
