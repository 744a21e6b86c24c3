//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message; what was written of a list is kept with the
//! list, so the body of round fifty is that of round forty-nine and what is new. Nothing is invented: messages go out in the
//! order in which they are, one for one.

mod assistant;
mod call_ids;
mod message;
mod options;
mod pages;
mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Result};
use bytes::Bytes;
use serde_json::Value;

use crate::profile::Profile;
use message::{pieces_of, unwritable};

/// A body, and what is to be known of the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON, in pieces.
    pub(crate) json: Vec<Bytes>,
    /// How many parallel answers it asks for.
    pub(crate) choices: u32,
}

/// Writes the body of `request` to a model.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool, profile: &Profile) -> Result<Body> {
    let options = options::write(request, model, streaming, &profile.options);
    let choices = options.get("n").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let (mut json, mut rest) = if options.contains_key("messages") {
        (Vec::new(), b"{".to_vec())
    } else {
        (pieces_of(&request.messages, profile.messages)?, b"],".to_vec())
    };
    if !options.contains_key("tools")
        && let Some(tools) = options::tools(request, &profile.options)?
    {
        rest.extend_from_slice(b"\"tools\":");
        rest.extend_from_slice(&tools);
        rest.push(b',');
    }
    // The other fields without the brace that opens them; there always is one, the model.
    let fields = serde_json::to_vec(&options).map_err(unwritable)?;
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    json.push(rest.into());
    Ok(Body { json, choices })
}
