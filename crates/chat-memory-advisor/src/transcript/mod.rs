//! From a log to what the model is sent: pure functions, and the settings they follow.

pub(crate) mod compact;
pub(crate) mod fill;
pub(crate) mod on_overflow;
pub(crate) mod open_calls;
pub(crate) mod planned;
pub(crate) mod repair;
pub(crate) mod shorten;
pub(crate) mod summary;
pub(crate) mod texts;
#[cfg(feature = "tiktoken")]
pub(crate) mod tiktoken;
pub(crate) mod token_counter;
pub(crate) mod validate;
pub(crate) mod whole_turns;
pub(crate) mod window;
