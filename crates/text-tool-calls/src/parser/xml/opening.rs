//! `tool_of`: which tag opens a call.

use crate::parser::marker::{Marker, marker_at};
use crate::parser::markup::tag::{Tag, TagKind};
use crate::parser::settings::OnUnknownTool;
use crate::tools::TextTools;

/// The element of a call that is no short form.
pub(super) const TOOL: &str = "tool";

/// Checks whether a tag with this text after `<` may open a call.
pub(super) fn may_be_call(text: &str, tools: &TextTools) -> bool {
    let mut elements = tools.elements().chain([TOOL]);
    elements.any(|element| match marker_at(text, element) {
        Marker::Maybe => true,
        Marker::None => false,
        Marker::Whole => {
            let after = text.get(element.len()..).unwrap_or_default().chars().next();
            after.is_none_or(|after| after.is_whitespace() || matches!(after, '>' | '/'))
        }
    })
}

/// Returns the tool that this tag calls, if it is an opening tag with all that it needs.
pub(super) fn tool_of(tag: &Tag, tools: &TextTools, on_unknown: OnUnknownTool) -> Option<String> {
    if tag.kind == TagKind::Closing {
        return None;
    }
    if tag.name.eq_ignore_ascii_case(TOOL) {
        let name = tag.attribute("name").map(str::trim).filter(|name| !name.is_empty())?;
        let is_call = on_unknown == OnUnknownTool::Call || tools.contains(name);
        return is_call.then(|| name.to_owned());
    }
    let form = tools.form_of_element(&tag.name)?;
    let has = |argument: &str| {
        tag.attributes.iter().any(|(name, value)| form.argument(name) == Some(argument) && !value.is_empty())
    };
    form.required.iter().all(|argument| has(argument)).then(|| form.tool.to_string())
}
