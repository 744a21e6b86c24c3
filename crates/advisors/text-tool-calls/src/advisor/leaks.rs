//! `Leaks`: the calls of a turn that the model wrote into its text, where they are not read.

use advisor_core::{ChatResponse, Turn};

use crate::format::TextFormat;
use crate::parser::TextCallParser;
use crate::parser::event::{OpenedCall, ParserEvent, ParserLimits};
use crate::tools::TextTools;

/// The most bytes of a text that are searched.
const MAX_SEARCHED: usize = 1024 * 1024;

/// The first call in each text of a turn that was not read as one, in order. A turn extension.
///
/// [`TextToolCalls`](super::TextToolCalls) inserts it where it only reports such calls. They never run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leaks(pub Vec<OpenedCall>);

/// Reports a call in the text of an answer that has no calls. The log has no content of it.
pub(super) fn report_leak(response: &ChatResponse, tools: &TextTools, turn: &Turn) {
    if response.message().tool_calls().next().is_some() {
        return;
    }
    let text = response.text();
    let text = text.get(..text.floor_char_boundary(MAX_SEARCHED)).unwrap_or_default();
    let limits = ParserLimits::default();
    let (mut parser, mut events) = (TextCallParser::new(TextFormat::ALL, tools, limits), Vec::new());
    // A text that cannot be parsed to its end may have begun a call.
    let _ = parser.push(text, &mut events).and_then(|()| parser.finish(&mut events));
    let leak = events.into_iter().find_map(|event| match event {
        ParserEvent::Opened(call) if tools.contains(&call.name) => Some(call),
        _ => None,
    });
    if let Some(call) = leak {
        tracing::warn!(format = call.format.as_str(), "the model wrote a tool call into its text");
        turn.extensions().update(|leaks: &mut Leaks| leaks.0.push(call));
    }
}
