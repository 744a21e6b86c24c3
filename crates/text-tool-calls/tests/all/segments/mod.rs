//! The segment layer: handlers, their ends and callbacks, and the JSON form of events.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod ends;
mod factory;
mod native;
mod parsing;
