//! The body of a request to the Responses API.
//!
//! Messages become input items in their order. Each is written once per server and kept, as for Chat Completions.

mod input;
mod options;
mod output;
mod parts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatRequest, Result, Text};
use bytes::Bytes;
use provider_http::names::WireNames;
use serde_json::Value;

use crate::written::written_body;

/// The settings of a model that its requests depend on.
#[derive(Clone, Default)]
pub(super) struct BodySettings {
    /// Whether the server streams the answer.
    pub(super) streaming: bool,
    /// Tools that the server runs.
    pub(super) server_tools: Arc<[Value]>,
}

/// Shows no tool: one of an MCP server may have a token.
impl fmt::Debug for BodySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodySettings").field("streaming", &self.streaming).finish_non_exhaustive()
    }
}

/// The form of items for one server. Equal forms write equal items.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InputForm {
    /// The format name of data that goes back to this server.
    pub(super) format: Text,
    /// The callers of the calls so far, by the ids of the calls: programs of the server, to which the results go.
    callers: BTreeMap<Text, Value>,
    /// The ids of the calls so far that the server runs by itself.
    server_calls: BTreeSet<Text>,
}

impl InputForm {
    pub(super) fn new(format: Text) -> Self {
        Self { format, callers: BTreeMap::new(), server_calls: BTreeSet::new() }
    }
}

/// Writes the body of `request` to a model. Returns it with its tool names.
///
/// # Errors
/// Of kind [`InvalidRequest`](advisor_core::ErrorKind::InvalidRequest) for an option that the API cannot express.
pub(super) fn body(
    request: &ChatRequest,
    model: &str,
    settings: &BodySettings,
    form: &InputForm,
) -> Result<(Bytes, Arc<WireNames>)> {
    let tools = |names: &WireNames| options::tools(request, &settings.server_tools, names);
    written_body(request, form, tools, |names| options::write(request, model, settings, names))
}
