//! Messages as input items.

use advisor_core::{Message, MessageContent, ToolResult};
use provider_http::names::{Alphabet, IdRule, Length, WireNames};
use provider_http::parts_of_result;
use serde_json::{Value, json};

use super::form::InputForm;
use super::output::output_items;
use super::parts;
use crate::written::MessageForm;

/// The longest call id that OpenAI accepts here; Chat Completions accepts 40 bytes.
const LONGEST_ID: usize = 64;

impl MessageForm for InputForm {
    const BEGINNING: &'static [u8] = b"{\"input\":[";

    fn call_ids(&self) -> IdRule {
        IdRule::new(Alphabet::Any, Length::UpTo(LONGEST_ID))
    }

    fn write(&self, message: &Message, wire: &WireNames) -> serde_json::Result<Vec<u8>> {
        let items = match message.content() {
            // Reasoning models of OpenAI read it as a message of the developer.
            MessageContent::System(text) => vec![json!({ "role": "system", "content": text })],
            MessageContent::User(parts) => {
                vec![json!({ "role": "user", "content": parts::content(parts) })]
            }
            MessageContent::Assistant(blocks) => output_items(blocks, self, wire),
            MessageContent::Tool(result) => vec![call_output(result, wire)],
            // A kind of message newer than this crate is sent as its text.
            _ => vec![json!({ "role": "user", "content": message.text() })],
        };
        let mut written = Vec::new();
        for item in &items {
            if !written.is_empty() {
                written.push(b',');
            }
            serde_json::to_writer(&mut written, item)?;
        }
        Ok(written)
    }
}

fn call_output(result: &ToolResult, wire: &WireNames) -> Value {
    json!({
        "type": "function_call_output",
        "call_id": wire.ids.on_the_wire(&result.call_id),
        "output": parts::content(&parts_of_result(result)),
    })
}
