//! Tests of the encoders: scenarios of each protocol, and rules that hold for any turn.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod any_turn;
mod approvals;
mod chat_events;
mod endings;
mod errors;
mod kinds;
mod other_forms;
mod parts;
mod pinned;
mod protocols;
mod table;
mod turns;
mod validate;
mod validators;
