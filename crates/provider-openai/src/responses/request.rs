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
use provider_http::names::ToolNames;
use serde_json::Value;

use crate::written::{Tools, pieces_of, unwritable};
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
    let tools = Tools::of(request, |tool| tool.get("name")?.as_str());
    let nothing = MessageList::new();
    let messages = if own.contains_key("input") { &nothing } else { &request.messages };
    let (mut json, names) = pieces_of(messages, form, &tools)?;
    let mut rest = if own.contains_key("input") {
        json.clear();
        b"{".to_vec()
    } else {
        b"],".to_vec()
    };
    if !own.contains_key("tools")
        && let Some(tools) = options::tools(request, &settings.server_tools, &names)?
    {
        rest.extend_from_slice(b"\"tools\":");
        rest.extend_from_slice(&tools);
        rest.push(b',');
    }
    let options = options::write(request, model, settings, &names)?;
    // The other fields without their opening brace. The list is never empty: it has the model.
    let fields = serde_json::to_vec(&options).map_err(unwritable)?;
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    json.push(rest.into());
    Ok((json, Arc::new(tools.offered_in(names))))
}
