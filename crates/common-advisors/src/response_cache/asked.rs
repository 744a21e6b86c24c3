//! `Asked`: the parts of a request that determine its answer.

use std::hash::{DefaultHasher, Hash, Hasher};

use advisor_core::{ChatOptions, ChatRequest, Message, MessageList, ResponseFormat, Text, ToolDefinition};

use super::json_bytes::json_bytes;

/// The parts of a request that determine its answer.
#[derive(PartialEq)]
pub(super) struct Asked {
    /// First, since most requests differ here.
    hash: u64,
    tenant: Text,
    messages: MessageList,
    options: ChatOptions,
    tools: Vec<ToolDefinition>,
    api_tools: Vec<ToolDefinition>,
}

impl Asked {
    pub(super) fn new(tenant: &str, request: &ChatRequest) -> Self {
        let mut hasher = DefaultHasher::new();
        let last = request.messages.last().map(Message::text);
        (tenant, request.messages.len(), last).hash(&mut hasher);
        Self {
            hash: hasher.finish(),
            tenant: tenant.into(),
            messages: request.messages.clone(),
            options: request.options.clone(),
            tools: request.tools.definitions().cloned().collect(),
            api_tools: request.api_tools().definitions().cloned().collect(),
        }
    }

    /// Returns a hash that equal requests share. Other requests may have it, too.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the bytes of its parts in JSON, apart from those of a fixed size.
    pub(super) fn bytes(&self) -> usize {
        let tools = self.tools.iter().chain(&self.api_tools);
        let tools = tools.map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.parameters));
        let schema = match &self.options.response_format {
            Some(ResponseFormat::JsonSchema { schema, .. }) => json_bytes(schema),
            _ => 0,
        };
        json_bytes(&self.messages) + tools.sum::<usize>() + schema + json_bytes(&self.options.extra)
    }
}
