//! Messages on the wire, written once and kept.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use advisor_core::{Error, ErrorKind, Message, MessageContent, MessageList, Result, Text, ToolResult};
use bytes::Bytes;
use serde::Serialize;

use super::assistant::Assistant;
use super::call_ids::CallIdMap;
use super::pages::Pages;
use super::parts::{self, Content};
use crate::profile::MessageRules;

/// What a message looks like, under each set of rules it was ever sent with. Kept with the message.
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

/// The pieces of a body up to the end of its messages, which are written once and used again by the requests that follow.
pub(super) fn pieces_of(messages: &MessageList, rules: MessageRules) -> Result<Vec<Bytes>> {
    let usual = CallIdMap::usual(rules.call_ids);
    let grown = messages.wire_form(
        |known: &Written| known.rules == rules,
        |known, new| {
            if !new.iter().copied().flat_map(call_ids).all(|id| usual.accepts(id)) {
                return Err(None);
            }
            let mut written = known.unwrap_or_else(|| Written { rules, pages: Pages::default() });
            for message in new {
                written.pages.push(&kept(message, rules, &usual).map_err(Some)?);
            }
            Ok(written)
        },
    );
    match grown {
        Ok(written) => Ok(written.pages.pieces()),
        Err(Some(error)) => Err(error),
        Err(None) => pieces_with_other_ids(messages, rules),
    }
}

/// The same where ids of calls must be others on the wire: which, depends on all messages.
fn pieces_with_other_ids(messages: &MessageList, rules: MessageRules) -> Result<Vec<Bytes>> {
    let ids = CallIdMap::new(rules.call_ids, messages.iter().flat_map(call_ids));
    let usual = CallIdMap::usual(rules.call_ids);
    let mut pages = Pages::default();
    for message in messages {
        if call_ids(message).any(|id| ids.is_special(id)) {
            pages.push(&write(message, rules, &ids)?);
        } else {
            pages.push(&kept(message, rules, &usual)?);
        }
    }
    Ok(pages.pieces())
}

/// What was written of a list of messages. Kept with the list.
#[derive(Clone)]
struct Written {
    rules: MessageRules,
    pages: Pages,
}

/// A message on the wire as it usually is.
fn kept(message: &Message, rules: MessageRules, ids: &CallIdMap) -> Result<Bytes> {
    message.wire_form(|_| Forms::default()).written(rules, || write(message, rules, ids))
}

/// The ids of the calls that a message makes or answers.
fn call_ids(message: &Message) -> impl Iterator<Item = &Text> {
    let answered = message.tool_result().map(|result| &result.call_id);
    message.tool_calls().map(|call| &call.id).chain(answered)
}

fn write(message: &Message, rules: MessageRules, ids: &CallIdMap) -> Result<Bytes> {
    let written = match message.content() {
        MessageContent::System(text) => serde_json::to_vec(&Plain { role: "system", content: text }),
        MessageContent::User(parts) => {
            serde_json::to_vec(&User { role: "user", content: parts::user_content(parts) })
        }
        MessageContent::Assistant(blocks) => serde_json::to_vec(&Assistant::new(blocks, rules, ids)),
        MessageContent::Tool(result) => serde_json::to_vec(&Tool::new(result, rules, ids)),
        // A kind of message that is newer than this crate: its text.
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
    name: Option<&'a str>,
    content: Content<'a>,
}

impl<'a> Tool<'a> {
    fn new(result: &'a ToolResult, rules: MessageRules, ids: &CallIdMap) -> Self {
        Self {
            role: "tool",
            tool_call_id: ids.on_the_wire(&result.call_id),
            name: rules.tool_name.then_some(result.name.as_str()),
            content: parts::tool_content(&result.parts, rules.tool_media),
        }
    }
}
