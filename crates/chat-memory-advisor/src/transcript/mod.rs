//! Pure functions from a log to the messages for the model, and their settings.

pub(crate) mod fill;
pub(crate) mod on_overflow;
pub(crate) mod open_calls;
pub(crate) mod planned;
pub(crate) mod refused;
pub(crate) mod repair;
pub(crate) mod shorten;
pub(crate) mod summarizer;
pub(crate) mod summary;
pub(crate) mod texts;
#[cfg(feature = "tiktoken")]
pub(crate) mod tiktoken;
pub(crate) mod token_counter;
pub(crate) mod validate;
pub(crate) mod whole_turns;
pub(crate) mod window;
