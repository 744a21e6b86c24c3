//! `find_leak`: the diagnostic of a call in a text that should have none.

use crate::parser::TextCallParser;
use crate::parser::event::ParserEvent;
use crate::parser::format::TextFormat;
use crate::parser::settings::{OnUnknownTool, ParserSettings};
use crate::parser::steps;
use crate::tools::TextTools;

/// The characters of a [`Leak::snippet`].
const SNIPPET: usize = 240;
/// The most bytes of a text that are searched.
const MAX_SEARCHED: usize = 1024 * 1024;
const LABEL: &str = "[TOOL_CALL]";
/// The most bytes of white space and the name of a tool after a label.
const MAX_NAME: usize = 256;

/// A tool call in a text that was not read as one.
///
/// It is a diagnostic: the call never runs. The snippet is content, so it must not get into a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// The notation of the call.
    pub markup: Markup,
    /// The first 240 characters of the call.
    pub snippet: String,
}

impl Leak {
    /// The code of this diagnostic.
    pub const CODE: &'static str = "api_tool_call_text_leak";
}

/// The notation of a call in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Markup {
    /// In a format that [`TextCallParser`] reads.
    Format(TextFormat),
    /// As `[TOOL_CALL] name {…}`.
    Label,
}

/// Finds the first tool call in a text of an answer that should have none.
///
/// It is for models that had the provider's interface for calls, and made no call through it.
///
/// At most the first mebibyte is searched.
///
/// # Example
/// ```
/// use advisor_core::ToolDefinition;
/// use serde_json::json;
/// use text_tool_calls::{Markup, TextFormat, TextTools, find_leak};
///
/// let time = ToolDefinition::new("time", "Tells the time.", json!({"type": "object"}));
/// let tools = TextTools::new([&time]);
/// let leak = find_leak("Sure: {\"name\": \"time\", \"arguments\": {}}", &tools).unwrap();
/// assert_eq!(leak.markup, Markup::Format(TextFormat::Json));
/// assert_eq!(find_leak("The `time` tool takes {} as arguments.", &tools), None);
/// ```
#[must_use]
pub fn find_leak(text: &str, tools: &TextTools) -> Option<Leak> {
    let text = text.get(..text.floor_char_boundary(MAX_SEARCHED)).unwrap_or_default();
    let formats = TextFormat::ALL.into_iter().filter_map(|format| {
        let at = first_call(text, format, tools)?;
        Some((at, Markup::Format(format)))
    });
    let (at, markup) =
        formats.chain(first_label(text, tools).map(|at| (at, Markup::Label))).min_by_key(|(at, _)| *at)?;
    let snippet = text.get(at..).unwrap_or_default().chars().take(SNIPPET).collect();
    Some(Leak { markup, snippet })
}

/// Returns the offset of the first call of this format, in bytes.
fn first_call(text: &str, format: TextFormat, tools: &TextTools) -> Option<usize> {
    let settings = ParserSettings::default().with_on_unknown_tool(OnUnknownTool::Text);
    let mut parser = TextCallParser::with_settings([format], tools, settings);
    let mut events = Vec::new();
    // A text that cannot be parsed to its end may have begun a call.
    let _ = parser.push(text, &mut events).and_then(|()| parser.finish(&mut events));
    let mut at = 0;
    for event in events {
        match event {
            ParserEvent::Text(text) | ParserEvent::Markup(text) => at += text.len(),
            ParserEvent::Opened(_) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the offset of the first `[TOOL_CALL]` before the name of a tool, in bytes.
fn first_label(text: &str, tools: &TextTools) -> Option<usize> {
    let mut labels = text.match_indices(LABEL);
    labels.find_map(|(at, label)| {
        let after = text.get(at + label.len()..)?;
        let after = after.get(..after.floor_char_boundary(MAX_NAME))?.trim_start();
        let end = after.find(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '(' | ':'));
        steps::count(end.unwrap_or(after.len()));
        after.get(..end?).is_some_and(|name| tools.contains(name)).then_some(at)
    })
}
