//! Policies over streams, without a tool loop. `tests/order/stream_policy.rs` of the workspace has whole chains.

mod common;
mod failures;
mod judging;
mod models;
mod replacing;
mod shapes;
mod waiting;
