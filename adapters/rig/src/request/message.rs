//! Messages of the request.

use std::collections::HashMap;

use advisor_core::{
    Block, BlockContent, Message, MessageContent, MessageList, Result, Text, ToolCall, ToolResult,
};
use provider_http::json::arguments;
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, Message as WireMessage, ToolCall as WireCall, ToolFunction,
    ToolResult as WireResult,
};
use serde_json::Value;

use super::{parts, tool_name};
use crate::convert::{CONTENT, Own};

/// The form in which messages are sent.
#[derive(Debug)]
pub(super) struct Form<'a> {
    wire: &'a WireNames,
    /// The format name of data that goes back.
    format: &'a str,
    /// The ids of this model's calls. rig makes those that a server omits, and sends a call as it came only under its id.
    ids: HashMap<String, CallId>,
}

impl<'a> Form<'a> {
    pub(super) fn new(wire: &'a WireNames, format: &'a str, messages: &MessageList) -> Self {
        let mut form = Self { wire, format, ids: HashMap::new() };
        let own = messages.iter().flat_map(Message::blocks).flat_map(|block| form.own(block));
        let ids = own.filter_map(|own| match own.content {
            AssistantContent::ToolCall(call) => Some((call.id.wire().into_owned(), call.id)),
            _ => None,
        });
        form.ids = ids.collect();
        form
    }

    fn id(&self, id: &Text) -> CallId {
        let id = self.wire.call_id(id);
        self.ids.get(&*id).cloned().unwrap_or_else(|| CallId::from_wire(id))
    }

    /// Returns the messages for the model. Adjacent results are one message.
    pub(super) fn messages(&self, messages: &MessageList) -> Result<Vec<WireMessage>> {
        let (mut all, mut results) = (Vec::new(), Vec::new());
        for message in messages {
            if let MessageContent::Tool(result) = message.content() {
                results.push(self.result(result)?);
                continue;
            }
            if !results.is_empty() {
                all.push(WireMessage::tool_results(std::mem::take(&mut results)));
            }
            all.push(self.message(message)?);
        }
        if !results.is_empty() {
            all.push(WireMessage::tool_results(results));
        }
        Ok(all)
    }

    fn message(&self, message: &Message) -> Result<WireMessage> {
        Ok(match message.content() {
            MessageContent::System(text) => WireMessage::system(text.as_str()),
            MessageContent::User(user) => WireMessage::User { content: parts::of_user(user) },
            MessageContent::Assistant(blocks) => WireMessage::Assistant(self.assistant(blocks)?),
            // A kind of message newer than this crate is sent as its text.
            _ => WireMessage::user(message.text()),
        })
    }

    /// Returns the parts of an answer. What the provider signed goes back as it came; other reasoning does not.
    fn assistant(&self, blocks: &[Block]) -> Result<AssistantMessage> {
        let mut content = Vec::new();
        for block in blocks {
            match block.content() {
                BlockContent::Text(text) | BlockContent::Refusal(text) if !text.is_empty() => {
                    content.push(AssistantContent::text(text));
                }
                BlockContent::ToolCall(call) => content.push(self.call(block, call)?),
                BlockContent::Reasoning(_) | BlockContent::Opaque(_) => {
                    content.extend(self.own(block).map(|own| own.content));
                }
                _ => {}
            }
        }
        if content.is_empty() {
            content.push(AssistantContent::text(""));
        }
        let mut message = AssistantMessage::new(content);
        message.origin = blocks.iter().find_map(|block| self.own(block).next()).map(|own| own.origin);
        Ok(message)
    }

    /// Returns the call as it is now. rig drops the provider's item of a call that was changed.
    fn call(&self, block: &Block, call: &ToolCall) -> Result<AssistantContent> {
        let name = tool_name(&self.wire.tool(&call.name))?;
        let function = ToolFunction::new(name, Value::Object(arguments::as_object(&call.arguments)));
        let mut wire = WireCall::new(self.id(&call.id), function);
        if let Some(AssistantContent::ToolCall(own)) = self.own(block).next().map(|own| own.content) {
            wire.native = own.native;
        }
        Ok(AssistantContent::ToolCall(wire))
    }

    /// Returns the content of this model in a block.
    fn own(&self, block: &Block) -> impl Iterator<Item = Own> {
        let opaque = match block.content() {
            BlockContent::Opaque(own) if own.name == *CONTENT => Some((&own.format, &own.value)),
            _ => None,
        };
        let data = block.provider_data().iter().map(|data| (&data.format, &data.value));
        let own = data.chain(opaque).filter(|(format, _)| **format == *self.format);
        own.filter_map(|(_, value)| serde_json::from_value(value.clone()).ok())
    }

    fn result(&self, result: &ToolResult) -> Result<WireResult> {
        Ok(WireResult {
            call: self.id(&result.call_id),
            name: tool_name(&self.wire.tool(&result.name))?,
            content: parts::of_result(&parts_of_result(result)),
            is_error: result.is_error,
        })
    }
}
