//! Pure functions from a log to the messages for the model, and their settings.

pub(crate) mod repair;
pub(crate) mod shorten;
pub(crate) mod summary;
pub(crate) mod texts;
pub(crate) mod tokens;
pub(crate) mod window;
