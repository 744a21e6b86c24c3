//! The body of a request to `/api/chat`.
//!
//! Every message is written once and kept with the message, and the written list with the list. So a later round
//! writes only its new messages. Messages are sent one for one, in their order.

mod message;
mod options;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Result};
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
/// If the request cannot be written as JSON.
pub(crate) fn body(request: &ChatRequest, model: &str, settings: BodySettings) -> Result<Vec<Bytes>> {
    let is_own = |field: &str| request.options.extra.contains_key(field);
    let list = if is_own("messages") { Vec::new() } else { message::pieces(&request.messages)? };
    let tools = if is_own("tools") { None } else { options::tools(request)? };
    completed_body(list, tools, &options::write(request, model, settings))
}
