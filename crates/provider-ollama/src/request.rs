//! The body of a request to `/api/chat`.
//!
//! Every message is written once and kept with the message, and the written list with the list. So a later round
//! writes only its new messages. Messages are sent one for one, in their order.

mod message;
mod options;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Error, ErrorKind, Result};
use bytes::Bytes;

/// Writes the body of `request` to a model, in pieces.
///
/// # Errors
/// If the request asks for several answers, or cannot be written as JSON.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool) -> Result<Vec<Bytes>> {
    if request.options.choices.is_some_and(|choices| choices > 1) {
        let message =
            "Ollama gives one answer to a request; leave `ChatOptions::choices` unset, and ask several times";
        return Err(Error::new(ErrorKind::InvalidRequest, message));
    }
    let extra = &request.options.extra;
    let (mut body, mut rest) = if extra.contains_key("messages") {
        (Vec::new(), b"{".to_vec())
    } else {
        (message::pieces(&request.messages)?, b"],".to_vec())
    };
    if !extra.contains_key("tools")
        && let Some(tools) = options::tools(request)?
    {
        rest.extend_from_slice(b"\"tools\":");
        rest.extend_from_slice(&tools);
        rest.push(b',');
    }
    // The other fields without their opening brace. There is always one: the model.
    let fields = serde_json::to_vec(&options::write(request, model, streaming)).map_err(unwritable)?;
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    body.push(rest.into());
    Ok(body)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}
