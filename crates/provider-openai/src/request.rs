//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message. The written form of a list is
//! kept with the list. So the body of round fifty is that of round forty-nine plus the new messages. Messages
//! are sent one for one, in their order; nothing is invented.

mod message;
mod options;
pub(crate) mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, MessageList, Result};
use bytes::Bytes;
use provider_http::names::ToolNames;
use serde_json::Value;

use crate::profile::Profile;
use crate::written::{Tools, pieces_of, unwritable};

/// A request body, and the facts needed to read the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON, in pieces.
    pub(crate) json: Vec<Bytes>,
    /// The number of parallel answers it asks for.
    pub(crate) choices: u32,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<ToolNames>,
}

/// Writes the body of `request` to a model.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool, profile: &Profile) -> Result<Body> {
    let own = &request.options.extra;
    let tools = Tools::of(request, |tool| tool.get("function")?.get("name")?.as_str());
    let nothing = MessageList::new();
    let messages = if own.contains_key("messages") { &nothing } else { &request.messages };
    let (mut json, names) = pieces_of(messages, &profile.messages, &tools)?;
    let mut rest = if own.contains_key("messages") {
        json.clear();
        b"{".to_vec()
    } else {
        b"],".to_vec()
    };
    if !own.contains_key("tools")
        && let Some(tools) = options::tools(request, &profile.options, &names)?
    {
        rest.extend_from_slice(b"\"tools\":");
        rest.extend_from_slice(&tools);
        rest.push(b',');
    }
    let options = options::write(request, model, streaming, &profile.options, &names);
    let choices = options.get("n").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    // The other fields without their opening brace. The list is never empty: it has the model.
    let fields = serde_json::to_vec(&options).map_err(unwritable)?;
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    json.push(rest.into());
    Ok(Body { json, choices, names: Arc::new(tools.offered_in(names)) })
}
