//! JSON from servers and for them.
//!
//! [`read`] reads the JSON of an event in one pass, as [`Json`] describes it, and [`value`] any JSON as a value.
//! [`arguments`] converts the arguments of calls.

pub mod arguments;
mod reader;

pub use reader::{Json, Key, Str, count, is_nothing, read, value};
pub(crate) use reader::{first_value, has_escaped_letter, pass, string, unescaped, with_plain_keys};
