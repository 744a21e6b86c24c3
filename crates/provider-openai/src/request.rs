//! The body of a request.
//!
//! Every message is written once per server and kept with the message. Messages are sent one for one, in their order;
//! nothing is invented.

mod message;
mod options;
pub(crate) mod parts;
mod reasoning;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{Block, ChatRequest, ProviderData, Result, Text};
use bytes::Bytes;
use provider_http::names::WireNames;

use crate::profile::Profile;
use crate::written::written_body;

/// The form of messages for one server. Equal forms write equal messages.
#[derive(Debug, Clone, PartialEq)]
struct ChatForm {
    profile: Arc<Profile>,
    /// The format name of data that goes back to this server.
    format: Text,
}

impl ChatForm {
    /// Returns the data that this server attached to a block.
    fn own_data<'a>(&self, block: &'a Block) -> impl Iterator<Item = &'a ProviderData> {
        block.provider_data().iter().filter(|data| data.format == self.format)
    }
}

/// The settings of a model that its requests depend on.
#[derive(Debug, Clone)]
pub(crate) struct BodySettings {
    pub(crate) profile: Arc<Profile>,
    /// Whether the server streams the answer.
    pub(crate) streaming: bool,
}

/// Writes the body of `request` to a model. Provider data and opaque blocks of `format` go back in it. Returns it with its
/// tool names.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the caller asks for several answers.
pub(crate) fn body(
    request: &ChatRequest,
    model: &str,
    format: Text,
    settings: &BodySettings,
) -> Result<(Bytes, Arc<WireNames>)> {
    let form = ChatForm { profile: Arc::clone(&settings.profile), format };
    let tools = |names: &WireNames| options::tools(request, &settings.profile, names);
    written_body(request, &form, tools, |names| options::write(request, model, settings, names))
}
