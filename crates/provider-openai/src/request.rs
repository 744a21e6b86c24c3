//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message. Messages are sent one for one, in their
//! order; nothing is invented.

mod message;
mod options;
pub(crate) mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, Error, Result, Text};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written;
use serde_json::Value;

use crate::profile::{MessageRules, Profile};
use crate::written::{NAMES, written_messages};

/// A request body, and the facts needed to read the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON.
    pub(crate) json: Bytes,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<WireNames>,
}

/// The form of messages for one server. Equal forms write equal messages.
#[derive(Debug, Clone, PartialEq)]
struct ChatForm {
    rules: MessageRules,
    /// The format name of data that goes back to this server.
    format: Text,
}

/// The settings of a model that its requests depend on.
#[derive(Debug, Clone)]
pub(crate) struct BodySettings {
    pub(crate) profile: Profile,
    /// Whether the server streams the answer.
    pub(crate) streaming: bool,
}

/// Writes the body of `request` to a model. Provider data and opaque blocks of `format` go back in it.
pub(crate) fn body(
    request: &ChatRequest,
    model: &str,
    format: Text,
    settings: &BodySettings,
) -> Result<Body> {
    let BodySettings { profile, .. } = settings;
    let own = &request.options.extra;
    let verbatim = own.get("tools").and_then(Value::as_array).into_iter().flatten();
    let named = verbatim.filter_map(|tool| tool.get("function")?.get("name")?.as_str());
    let names = WireNames::new(request, profile.messages.call_ids, NAMES, &named.collect::<Vec<_>>());
    let form = ChatForm { rules: profile.messages, format };
    let messages = || written_messages(request, &form, &names);
    let messages = (!own.contains_key("messages")).then(messages).transpose()?;
    let tools =
        if own.contains_key("tools") { None } else { options::tools(request, &profile.options, &names)? };
    let fields = options::write(request, model, settings, &names);
    if fields.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(Error::configuration(
            "an answer is one: leave `n` out of the extra fields, or ask several times",
        ));
    }
    let json = written::body("messages", messages, tools, &fields)?;
    Ok(Body { json, names: Arc::new(names) })
}
