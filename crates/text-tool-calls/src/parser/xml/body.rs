//! `Body` and `ArgumentForm`: the forms of a body and of an argument.

use crate::parser::markup::tag::name_of;
use crate::tools::TextTools;

/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// Before the first element. It may also be the arguments as they are.
    Undecided,
    /// It has elements.
    Elements,
}

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentForm {
    Element,
    /// The text of a short form; its closing tag ends the call.
    ShortForm,
}

/// Checks whether a text that is no tag begins like the element of an argument.
pub(super) fn is_broken_argument(text: &str, tool: &str, tools: &TextTools) -> bool {
    let name = name_of(text.get(1..).unwrap_or_default());
    let is_like_arg = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("arg"));
    is_like_arg || tools.has_argument(tool, name)
}
