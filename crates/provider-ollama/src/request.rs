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
use provider_http::written::completed_body;

/// The settings of a model that its requests depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodySettings {
    /// Whether the server streams the answer.
    pub(crate) streaming: bool,
}

/// Writes the body of `request` to a model, in pieces.
///
/// # Errors
/// If the request asks for several answers, or cannot be written as JSON.
pub(crate) fn body(request: &ChatRequest, model: &str, settings: BodySettings) -> Result<Vec<Bytes>> {
    if request.options.choices.is_some_and(|choices| choices > 1) {
        let message =
            "Ollama gives one answer to a request; leave `ChatOptions::choices` unset, and ask several times";
        return Err(Error::new(ErrorKind::InvalidRequest, message));
    }
    let is_own = |field: &str| request.options.extra.contains_key(field);
    let list = if is_own("messages") { Vec::new() } else { message::pieces(&request.messages)? };
    let tools = if is_own("tools") { None } else { options::tools(request)? };
    completed_body(list, tools, &options::write(request, model, settings))
}
