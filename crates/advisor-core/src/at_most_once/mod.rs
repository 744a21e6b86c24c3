//! Keys of calls, and the state of calls that must not run twice.

pub(crate) mod call_key;
pub(crate) mod effect;
pub(crate) mod started_calls;
