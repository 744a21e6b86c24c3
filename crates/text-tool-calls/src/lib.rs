#![doc = include_str!("../README.md")]

mod advisor;
mod format;
mod json_string;
mod leak;
mod manifest;
mod parser;
pub mod segments;
mod string_fields;
mod thinking;
mod tools;

pub use advisor::{Leaks, TextToolCalls};
pub use format::{FormatError, PromptFormat, ToolCallFormat};
pub use leak::{Leak, Markup, find_leak};
pub use manifest::{JsonShape, ToolManifest};
pub use parser::TextCallParser;
pub use parser::event::{CallEnd, OpenedCall, ParserEvent};
pub use parser::format::TextFormat;
pub use parser::limits::{ParserError, ParserLimits};
pub use parser::settings::{OnCut, OnUnknownTool, ParserSettings};
pub use string_fields::{FieldPiece, JsonStringFields};
pub use thinking::{ThinkStart, ThinkingSplitter, ThoughtPiece};
pub use tools::{BodyMarkers, BodyText, TextTools, ToolForm};

/// Runs the code of the page for those who come from elsewhere as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;
