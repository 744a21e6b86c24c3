//! Tool calls that a language model writes into its text, as XML, JSON or sentinel markers: streaming
//! parsers, prompts and segment events.
//!
#![doc = include_str!("../README.md")]

mod advisor;
mod entities;
mod format;
mod parser;
mod prompt;
pub mod segments;
mod string_fields;
mod tools;

pub use advisor::{Leaks, TextToolCalls};
pub use format::{TextFormat, ToolCallFormat};
pub use parser::TextCallParser;
pub use parser::event::{OpenedCall, ParserError, ParserEvent, ParserLimits};
pub use tools::{TextTools, ToolForm};

/// Runs the code of the page for those who come from elsewhere as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/coming-from.md")]
mod coming_from {}
