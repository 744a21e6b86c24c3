//! Tool calls that a language model writes into its text.
//!
//! A model without an interface for tools gets descriptions of its tools in words, and writes its calls into its text.
//!
//! - [`TextToolCalls`] is the advisor: calls in the text look like those of an interface, so the tool loop runs them.
//! - [`ToolManifest`] describes the tools for the prompt, in a [`PromptFormat`].
//! - [`TextCallParser`] finds the calls in the text while it arrives, and emits [`ParserEvent`]s. Arguments become
//!   JSON with the types of the tool's schema.
//! - [`segments`] turns the chunks of an answer into segment events for user interfaces.
//! - [`JsonStringFields`] decodes one argument while it is generated.
//! - [`ThinkingSplitter`] separates reasoning from text.
//! - [`find_leak`] reports a call in a text that should have none.
//!
//! The parsers have no async and no I/O.

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

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Runs the code of the page for those who come from elsewhere as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;
