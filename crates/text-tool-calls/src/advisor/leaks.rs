//! `Leaks`: the reported calls of a turn; `report_leak`.

use advisor_core::{ChatResponse, Turn};

use crate::leak::{Leak, find_leak};
use crate::tools::TextTools;

/// The calls in the texts of a turn that were not read as calls, in order. A turn extension.
///
/// [`TextToolCalls`](super::TextToolCalls) inserts it where it only reports such calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leaks(pub Vec<Leak>);

/// Reports a call in the text of an answer that has no calls. The log has no content of it.
pub(super) fn report_leak(response: &ChatResponse, tools: &TextTools, turn: &Turn) {
    if response.message().tool_calls().next().is_some() {
        return;
    }
    if let Some(leak) = find_leak(&response.text(), tools) {
        tracing::warn!(code = Leak::CODE, markup = ?leak.markup, "the model wrote a tool call into its text");
        turn.extensions().update(|leaks: &mut Leaks| leaks.0.push(leak));
    }
}
