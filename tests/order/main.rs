//! What happens in which order: chains, streams, editors, advisors in between, drops and panics.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod cancellation;
mod chain;
mod chunk_stream;
mod client;
mod closures;
mod common_advisors;
mod context_fn;
mod edit_text;
mod edit_with;
mod end_when;
mod every_advisor;
mod fallback_model;
mod middle_advisors;
mod ordering;
mod panics;
mod ready_chunks;
mod side_tasks;
mod spans;
mod stream_policy;
mod traces;
