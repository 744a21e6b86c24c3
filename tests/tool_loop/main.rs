//! The tool loop as those who use it see it, with scripted models, gates and the paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod every_stage;
mod limits;
mod modes;
mod return_direct;
mod rounds;
mod support;
mod time_limit;
mod tool_errors;
mod usage;
