//! Messages in the form of Chat Completions.

mod assistant;

use std::borrow::Cow;

use advisor_core::{Message, MessageContent, Part, ToolResult};
use provider_http::names::{IdRule, WireNames};
use provider_http::parts_of_result;
use serde::Serialize;

use super::ChatForm;
use super::parts::{self, Content};
use crate::profile::MessageRules;
use crate::written::MessageForm;
use assistant::Assistant;

impl MessageForm for ChatForm {
    fn call_ids(&self) -> IdRule {
        self.rules.call_ids
    }

    fn is_lasting(&self, message: &Message) -> bool {
        assistant::is_lasting(message.blocks(), self)
    }

    fn write(&self, message: &Message, wire: &WireNames) -> serde_json::Result<Vec<u8>> {
        match message.content() {
            MessageContent::System(text) => serde_json::to_vec(&Plain { role: "system", content: text }),
            MessageContent::User(parts) => {
                serde_json::to_vec(&User { role: "user", content: parts::user_content(parts) })
            }
            MessageContent::Assistant(blocks) => serde_json::to_vec(&Assistant::new(blocks, self, wire)),
            MessageContent::Tool(result) => {
                serde_json::to_vec(&Tool::new(result, &parts_of_result(result), self.rules, wire))
            }
            // A kind of message newer than this crate is sent as its text.
            _ => serde_json::to_vec(&Plain { role: "user", content: &message.text() }),
        }
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct User<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
struct Tool<'a> {
    role: &'static str,
    tool_call_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    content: Content<'a>,
}

impl<'a> Tool<'a> {
    fn new(result: &'a ToolResult, parts: &'a [Part], rules: MessageRules, wire: &'a WireNames) -> Self {
        Self {
            role: "tool",
            tool_call_id: wire.call_id(&result.call_id),
            name: rules.sends_tool_name.then(|| wire.tool(&result.name)),
            content: parts::tool_content(parts, rules),
        }
    }
}
