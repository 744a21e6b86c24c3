//! The aggregator: deltas in, chunks and one response out, and the stored forms of both.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod arbitrary;
mod chunk_forms;
mod common;
mod endings;
mod fixture;
mod fixtures;
mod generated_ids;
mod limits;
mod numbered_blocks;
mod observing;
mod properties;
mod provider_data;
mod repeated_ids;
mod serde_forms;
mod stored;
