//! The content blocks of a message, written once and kept.

use std::borrow::Cow;

use advisor_core::{Block, Message, MessageContent, Result, ToolResult};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use provider_http::written::{unwritable, written_message};
use serde::Serialize;
use serde_json::Value;

use super::blocks::Blocks;
use super::message_form::MessageForm;
use super::server_tools::SentAs;
use super::{assistant, parts};

/// A note in place of user content of which nothing can be sent. The API refuses an empty message.
const EMPTY: &str = "[empty message]";

/// The author of a message on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireRole {
    /// Not a message: the `system` field.
    System,
    User,
    Assistant,
}

impl WireRole {
    pub(super) fn from_message(message: &Message) -> Self {
        match message.content() {
            MessageContent::System(_) => Self::System,
            MessageContent::Assistant(_) => Self::Assistant,
            // A kind of message newer than this crate is sent as the user's text.
            _ => Self::User,
        }
    }
}

/// Returns the content blocks of a message with its usual names, separated by commas. Empty if there is nothing to
/// send.
pub(super) fn cached(message: &Message, usual: MessageForm<'_>) -> Result<Bytes> {
    written_message(message, usual.format, || write(message, usual, |_| SentAs::Itself))
}

/// Writes the content blocks of a message. `sent_as` returns the form of each block of an answer.
pub(super) fn write(
    message: &Message,
    form: MessageForm<'_>,
    sent_as: impl Fn(&Block) -> SentAs,
) -> Result<Bytes> {
    let mut blocks = Blocks::default();
    let written = match message.content() {
        MessageContent::System(text) => blocks.extend(parts::text_block(text).as_slice()),
        MessageContent::User(parts) => push_user(&mut blocks, &parts::blocks_of(parts)),
        MessageContent::Assistant(answer) => assistant::push(&mut blocks, answer, form, sent_as),
        MessageContent::Tool(result) => blocks.push(&WireResult::new(result, form.names)),
        _ => push_user(&mut blocks, parts::text_block(&message.text()).as_slice()),
    };
    written.map(|()| blocks.into_bytes()).map_err(unwritable)
}

fn push_user(blocks: &mut Blocks, content: &[Value]) -> serde_json::Result<()> {
    blocks.extend(content)?;
    if blocks.is_empty() { blocks.extend(parts::text_block(EMPTY).as_slice()) } else { Ok(()) }
}

/// The result of a tool.
#[derive(Serialize)]
struct WireResult<'a> {
    r#type: &'static str,
    tool_use_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl<'a> WireResult<'a> {
    fn new(result: &'a ToolResult, wire: &WireNames) -> Self {
        Self {
            r#type: "tool_result",
            tool_use_id: wire.ids.on_the_wire(&result.call_id),
            content: if result.is_error {
                // The content of a failure is text alone, and the API refuses an empty one.
                parts::texts_of(&parts_of_result(result))
            } else {
                parts::blocks_of(&result.parts)
            },
            is_error: result.is_error,
        }
    }
}
