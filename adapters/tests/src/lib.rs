//! Tests that every adapter must pass, against servers on the loopback interface.
//!
//! A test gives an [`Ask`], which makes the model of a server. The model sends each request once.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing check is a failing test"
)]

mod chat_completions;
mod failures;
mod recorded;
mod requests;
mod signatures;
mod turns;

use std::sync::Arc;

use advisor_core::ChatModel;

pub use chat_completions::ChatCompletions;
pub use failures::{KEY, assert_kinds, failure_of};
pub use recorded::{Known, assert_recordings};
pub use requests::{assert_options, assert_transcript};
pub use signatures::{assert_signed_call, assert_signed_reasoning};
pub use turns::assert_memory_order;

/// Makes the model of a server at this URL (`http://127.0.0.1:PORT`).
pub type Ask = fn(&str) -> Arc<dyn ChatModel>;
