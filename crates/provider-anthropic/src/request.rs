//! The body of a request.
//!
//! Every message is written once and kept with the message. The written form of a list is kept with the list. So the
//! body of round fifty is that of round forty-nine plus the new messages.

mod assistant;
mod blocks;
mod message;
mod message_form;
mod offered;
mod options;
mod parts;
mod running_turn;
mod server_tools;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;

use advisor_core::{ChatRequest, MessageList, Result, Text};
use bytes::Bytes;
use provider_http::names::ToolNames;
use provider_http::written::unwritable;
use serde_json::Value;

use crate::caching::PromptCaching;
use crate::wire::CONTAINER;
use message_form::Format;
use offered::Offered;
use turns::Turns;

/// A request body, and the facts needed to read the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON, in pieces.
    pub(crate) json: Vec<Bytes>,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<ToolNames>,
}

/// The settings of a model that affect the bodies of its requests.
#[derive(Debug, Clone)]
pub(crate) struct BodySettings {
    pub(crate) streaming: bool,
    pub(crate) caching: PromptCaching,
    /// Definitions of tools in the form of the API.
    pub(crate) definitions: Vec<Value>,
}

impl Default for BodySettings {
    fn default() -> Self {
        Self { streaming: true, caching: PromptCaching::Off, definitions: Vec::new() }
    }
}

/// Writes the body of `request` to a model. Provider data and opaque blocks of `format` go back in it.
pub(crate) fn body(
    request: &ChatRequest,
    model: &str,
    format: &Text,
    settings: &BodySettings,
) -> Result<Body> {
    let own = &request.options.extra;
    let offered = Offered::new(request, &settings.definitions);
    let nothing = MessageList::new();
    let messages = if own.contains_key("messages") { &nothing } else { &request.messages };
    let offered_names = offered.names();
    let (turns, names) = Turns::write(messages, &Format(format.clone()), &offered_names, settings.caching)?;
    let mut rest = Vec::new();
    if !own.contains_key("system") {
        push_list(&mut rest, "system", &turns.system_pieces(settings.caching));
    }
    if !own.contains_key("tools") {
        push_list(&mut rest, "tools", &offered.pieces(&names, settings.caching)?);
    }
    let tool_choice = offered.tool_choice(&names);
    let mut options = options::write(&request.options, model, settings, tool_choice);
    if let Some(id) = running_turn::container(messages, format) {
        // The caller may name another one, or only what to load into it.
        if let Value::Object(fields) = options.entry(CONTAINER).or_insert_with(|| id.clone()) {
            fields.entry("id").or_insert(id);
        }
    }
    // The list is never empty: it has the model.
    let fields = serde_json::to_vec(&options).map_err(unwritable)?;
    let mut json =
        if own.contains_key("messages") { Vec::new() } else { turns.into_pieces(settings.caching) };
    rest.insert(0, if json.is_empty() { b'{' } else { b',' });
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    json.push(rest.into());
    Ok(Body { json, names: Arc::new(offered_names.complete(names)) })
}

/// Appends a field with a list of these entries, and a comma, unless there are none.
fn push_list(json: &mut Vec<u8>, key: &str, entries: &[Bytes]) {
    if !entries.is_empty() {
        json.extend_from_slice(format!("\"{key}\":[").as_bytes());
        entries.iter().for_each(|entry| json.extend_from_slice(entry));
        json.extend_from_slice(b"],");
    }
}
