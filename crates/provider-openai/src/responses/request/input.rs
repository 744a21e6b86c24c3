//! Messages as input items.

use advisor_core::{Message, MessageContent, Result, Text, ToolResult};
use bytes::Bytes;
use provider_http::names::{IdRule, WireNames};
use provider_http::parts_of_result;
use provider_http::written::entries;
use serde_json::{Value, json};

use super::InputForm;
use super::output::{CALLER, caller, earlier_server_calls, output_items, server_calls};
use super::parts;
use crate::written::MessageForm;

/// The longest call id that OpenAI accepts here; Chat Completions accepts 40 bytes.
const LONGEST_ID: usize = 64;

impl MessageForm for InputForm {
    const LIST: &'static str = "input";

    fn name_of(tool: &Value) -> Option<&str> {
        tool.get("name")?.as_str()
    }

    fn call_ids(&self) -> IdRule {
        IdRule::UpTo(LONGEST_ID)
    }

    /// The result of a call that a program made names the program. So it depends on the call, as does the output of a call
    /// that the server ran.
    fn is_lasting(&self, message: &Message) -> bool {
        let blocks = message.blocks();
        match message.content() {
            MessageContent::Tool(result) => !self.callers.contains_key(&result.call_id),
            _ => {
                blocks.iter().all(|block| caller(block, self).is_none())
                    && earlier_server_calls(blocks, self).next().is_none()
            }
        }
    }

    fn note(&mut self, message: &Message) {
        self.server_calls.extend(server_calls(message.blocks(), self).map(Text::from).collect::<Vec<_>>());
        for block in message.blocks() {
            let Some(call) = block.as_tool_call() else { continue };
            match caller(block, self) {
                Some(caller) => drop(self.callers.insert(call.id.clone(), caller)),
                None => drop(self.callers.remove(&call.id)),
            }
        }
    }

    fn write(&self, message: &Message, wire: &WireNames) -> Result<Bytes> {
        entries(match message.content() {
            // Reasoning models of OpenAI read it as a message of the developer.
            MessageContent::System(text) => vec![json!({ "role": "system", "content": text })],
            MessageContent::User(parts) => {
                vec![json!({ "role": "user", "content": parts::content(parts) })]
            }
            MessageContent::Assistant(blocks) => output_items(blocks, self, wire),
            MessageContent::Tool(result) => vec![call_output(result, self, wire)],
            // A kind of message newer than this crate is sent as its text.
            _ => vec![json!({ "role": "user", "content": message.text() })],
        })
    }
}

fn call_output(result: &ToolResult, form: &InputForm, wire: &WireNames) -> Value {
    let mut output = json!({
        "type": "function_call_output",
        "call_id": wire.call_id(&result.call_id),
        "output": parts::content(&parts_of_result(result)),
    });
    if let (Some(caller), Some(fields)) = (form.callers.get(&result.call_id), output.as_object_mut()) {
        fields.insert(CALLER.to_owned(), caller.clone());
    }
    output
}
