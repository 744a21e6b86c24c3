//! What the tests of the workspace share.
#![allow(missing_debug_implementations, reason = "nobody prints them")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod editors;
pub mod matrix;
pub mod prelude;
