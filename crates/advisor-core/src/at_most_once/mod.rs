//! Names of calls, and what is known of those that must not run twice.

pub(crate) mod call_key;
pub(crate) mod effect;
pub(crate) mod started_calls;
