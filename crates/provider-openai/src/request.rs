//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message. The written form of a list is
//! kept with the list. So the body of round fifty is that of round forty-nine plus the new messages. Messages
//! are sent one for one, in their order; nothing is invented.

mod body_buffer;
mod message;
mod options;
mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, MessageList, Result, Text, ToolChoice};
use bytes::Bytes;
use provider_http::names::{NameRule, ToolNames};
use serde_json::Value;

use crate::profile::Profile;
use message::{pieces_of, unwritable};

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
    let tools = Tools::of(request);
    let nothing = MessageList::new();
    let messages = if own.contains_key("messages") { &nothing } else { &request.messages };
    let (mut json, names) = pieces_of(messages, profile.messages, &tools)?;
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
    let verbatim: Vec<Text> = tools.verbatim.iter().map(|name| Text::from(*name)).collect();
    let names = names.with_offered(tools.offered.iter().copied().chain(&verbatim));
    Ok(Body { json, choices, names: Arc::new(names) })
}

/// The tool names in a request, beside those in its messages.
struct Tools<'a> {
    /// The names of the tools that may be called, and the one in the tool choice.
    offered: Vec<&'a Text>,
    /// The names of the tools that the caller wrote into the body.
    verbatim: Vec<&'a str>,
}

impl<'a> Tools<'a> {
    fn of(request: &'a ChatRequest) -> Self {
        let chosen = match &request.options.tool_choice {
            Some(ToolChoice::Tool(name)) => Some(name),
            _ => None,
        };
        let own = request.options.extra.get("tools").and_then(Value::as_array);
        let verbatim =
            own.into_iter().flatten().filter_map(|tool| tool.get("function")?.get("name")?.as_str());
        Self {
            offered: request.tools.definitions().map(|tool| &tool.name).chain(chosen).collect(),
            verbatim: verbatim.collect(),
        }
    }

    /// Checks whether all offered names can be sent unchanged.
    fn fit(&self) -> bool {
        self.offered.iter().all(|name| NameRule::UP_TO_64.accepts(name))
    }

    /// Returns the wire names of a request whose messages contain the names `in_messages`.
    fn names<'m>(&self, in_messages: impl Iterator<Item = &'m Text>) -> ToolNames
    where
        'a: 'm,
    {
        ToolNames::new(NameRule::UP_TO_64, &self.verbatim, self.offered.iter().copied().chain(in_messages))
    }
}
