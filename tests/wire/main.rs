//! Bytes and requests: conversations over each wire format, quirks of servers, recordings, clients and peers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod entity_wires;
mod history;
mod http;
mod json;
mod peers;
mod policy_clients;
mod quirks;
#[path = "../../crates/serving/advisor-sse/tests/all/table.rs"]
mod table;
mod transport;
#[path = "../../crates/serving/advisor-sse/tests/all/validate/mod.rs"]
mod validate;
