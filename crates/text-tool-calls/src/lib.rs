#![doc = include_str!("../README.md")]

mod advisor;
mod entities;
mod format;
mod manifest;
mod parser;
pub mod segments;
mod string_fields;
mod thinking;
mod tools;

pub use advisor::{Leaks, TextToolCalls};
pub use format::{PromptFormat, TextFormat, ToolCallFormat};
pub use manifest::ToolManifest;
pub use parser::TextCallParser;
pub use parser::event::{OpenedCall, ParserError, ParserEvent, ParserLimits};
pub use string_fields::{FieldPiece, JsonStringFields};
pub use thinking::{ThinkingSplitter, ThoughtPiece};
pub use tools::{TextTools, ToolForm};

/// Runs the code of the page for those who come from elsewhere as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;
