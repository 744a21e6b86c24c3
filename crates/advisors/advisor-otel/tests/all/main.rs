//! Telemetry of a turn: spans, metrics and content, at a provider of ours and at a real receiver.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod content;
mod metrics;
mod receiver;
mod spans;
mod support;
