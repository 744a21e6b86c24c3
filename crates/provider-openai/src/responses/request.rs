//! The body of a request to the Responses API.
//!
//! Messages become input items in their order. Each is written once per server and kept, as for Chat Completions.

mod form;
mod input;
mod options;
mod output;
mod parts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, MessageList, Result};
use bytes::Bytes;
use provider_http::names::{OfferedNames, ToolNames};
use provider_http::written::completed_body;
use serde_json::Value;

use crate::written::{NAMES, pieces_of};
pub(super) use form::InputForm;

/// The settings of a model that its requests depend on.
#[derive(Debug, Clone, Default)]
pub(super) struct BodySettings {
    /// Whether the server streams the answer.
    pub(super) streaming: bool,
    /// Whether the server keeps the answer.
    pub(super) store: bool,
    /// Tools that the server runs.
    pub(super) server_tools: Arc<[Value]>,
}

/// Writes the body of `request` to a model. Returns it in pieces, with its tool names.
///
/// # Errors
/// Of kind [`InvalidRequest`](advisor_core::ErrorKind::InvalidRequest) for an option that the API cannot express.
pub(super) fn body(
    request: &ChatRequest,
    model: &str,
    settings: &BodySettings,
    form: &InputForm,
) -> Result<(Vec<Bytes>, Arc<ToolNames>)> {
    let own = &request.options.extra;
    let verbatim = own.get("tools").and_then(Value::as_array).into_iter().flatten();
    let offered = OfferedNames::new(request, NAMES, verbatim.filter_map(|tool| tool.get("name")?.as_str()));
    let nothing = MessageList::new();
    let is_own = own.contains_key("input");
    let messages = if is_own { &nothing } else { &request.messages };
    let (list, names) = pieces_of(messages, form, &offered)?;
    let list = if is_own { Vec::new() } else { list };
    let tools = if own.contains_key("tools") {
        None
    } else {
        options::tools(request, &settings.server_tools, &names)?
    };
    let json = completed_body(list, tools, &options::write(request, model, settings, &names)?)?;
    Ok((json, Arc::new(offered.complete(names))))
}
