//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message, so the body of round fifty is put together from
//! the pieces of the rounds before it. Nothing is invented: messages go out in the order in which they are, one for one.

mod assistant;
mod call_ids;
mod message;
mod options;
mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Result};
use bytes::Bytes;
use serde_json::Value;

use crate::profile::Profile;
use message::{forms_of, unwritable};

/// A body, and what is to be known of the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) json: Bytes,
    /// How many parallel answers it asks for.
    pub(crate) choices: u32,
}

/// Writes the body of `request` to a model.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool, profile: &Profile) -> Result<Body> {
    let options = options::write(request, model, streaming, &profile.options);
    let choices = options.get("n").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let rest = serde_json::to_vec(&options).map_err(unwritable)?;
    if options.contains_key("messages") {
        return Ok(Body { json: rest.into(), choices });
    }
    let messages = forms_of(&request.messages, profile.messages)?;
    let length: usize = messages.iter().map(|message| message.len() + 1).sum();
    let mut json = Vec::with_capacity(length + rest.len() + 16);
    json.extend_from_slice(b"{\"messages\":[");
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(message);
    }
    json.extend_from_slice(b"],");
    // The other fields follow, without the brace that opens them: there always is one, the model.
    json.extend_from_slice(rest.get(1..).unwrap_or_default());
    Ok(Body { json: json.into(), choices })
}
