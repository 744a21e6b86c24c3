//! Messages on the wire, written once and kept.

mod assistant;

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use advisor_core::{Error, ErrorKind, Message, MessageContent, MessageList, Result, ToolResult};
use bytes::Bytes;
use provider_http::names::{CallIds, NameRule, ToolNames, WireNames};
use serde::Serialize;

use super::Tools;
use super::body_buffer::BodyBuffer;
use super::parts::{self, Content};
use crate::profile::MessageRules;
use assistant::Assistant;

/// The wire forms of a message, one per set of rules it was sent with. Kept with the message.
#[derive(Default)]
struct Forms(Mutex<Vec<(MessageRules, Bytes)>>);

impl Forms {
    fn written(&self, rules: MessageRules, write: impl FnOnce() -> Result<Bytes>) -> Result<Bytes> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == rules) {
            return Ok(form.clone());
        }
        let form = write()?;
        forms.push((rules, form.clone()));
        Ok(form)
    }
}

/// Returns the names that do not depend on the rest of the request.
fn usual_names(rules: MessageRules) -> WireNames {
    WireNames::usual(rules.call_ids, NameRule::UP_TO_64)
}

/// Returns the pieces of a body up to the end of its messages, and the tool names in it. The pieces are written
/// once and reused by later requests.
pub(super) fn pieces_of(
    messages: &MessageList,
    rules: MessageRules,
    tools: &Tools<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    if !tools.fit() {
        return pieces_with_renames(messages, rules, tools);
    }
    let usual = usual_names(rules);
    let grown = messages.wire_form(
        |known: &WrittenList| known.rules == rules,
        |known, new| {
            if !new.iter().all(|message| usual.accepts(message)) {
                return Err(None);
            }
            let mut written = known.unwrap_or_else(|| WrittenList { rules, buffer: BodyBuffer::default() });
            for message in new {
                written.buffer.push(&cached(message, rules, &usual).map_err(Some)?);
            }
            Ok(written)
        },
    );
    match grown {
        Ok(written) => Ok((written.buffer.pieces(), usual.tools)),
        Err(Some(error)) => Err(error),
        Err(None) => pieces_with_renames(messages, rules, tools),
    }
}

/// Does the same if call ids or tool names must be replaced on the wire. The replacements depend on all
/// messages.
fn pieces_with_renames(
    messages: &MessageList,
    rules: MessageRules,
    tools: &Tools<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    let wire = WireNames {
        ids: CallIds::new(rules.call_ids, messages.iter().flat_map(WireNames::ids_in)),
        tools: tools.names(messages.iter().flat_map(WireNames::tools_in)),
    };
    let usual = usual_names(rules);
    let mut buffer = BodyBuffer::default();
    for message in messages {
        if wire.is_special(message) {
            buffer.push(&write(message, rules, &wire)?);
        } else {
            buffer.push(&cached(message, rules, &usual)?);
        }
    }
    Ok((buffer.pieces(), wire.tools))
}

/// The written form of a list of messages. Kept with the list.
#[derive(Clone)]
struct WrittenList {
    rules: MessageRules,
    buffer: BodyBuffer,
}

/// Returns the usual wire form of a message.
fn cached(message: &Message, rules: MessageRules, usual: &WireNames) -> Result<Bytes> {
    message.wire_form(|_| Forms::default()).written(rules, || write(message, rules, usual))
}

fn write(message: &Message, rules: MessageRules, wire: &WireNames) -> Result<Bytes> {
    let written = match message.content() {
        MessageContent::System(text) => serde_json::to_vec(&Plain { role: "system", content: text }),
        MessageContent::User(parts) => {
            serde_json::to_vec(&User { role: "user", content: parts::user_content(parts) })
        }
        MessageContent::Assistant(blocks) => serde_json::to_vec(&Assistant::new(blocks, rules, wire)),
        MessageContent::Tool(result) => serde_json::to_vec(&Tool::new(result, rules, wire)),
        // A kind of message newer than this crate is sent as its text.
        _ => serde_json::to_vec(&Plain { role: "user", content: &message.text() }),
    };
    written.map(Bytes::from).map_err(unwritable)
}

pub(super) fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
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
    fn new(result: &'a ToolResult, rules: MessageRules, wire: &'a WireNames) -> Self {
        Self {
            role: "tool",
            tool_call_id: wire.ids.on_the_wire(&result.call_id),
            name: rules.tool_name.then(|| wire.tools.on_the_wire(&result.name)),
            content: parts::tool_content(&result.parts, rules.tool_media),
        }
    }
}
