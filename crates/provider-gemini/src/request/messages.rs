//! Messages on the wire, written once and kept.

use advisor_core::{Message, MessageContent, MessageList, Part, Result};
use bytes::Bytes;
use provider_http::names::{CallIds, IdRule, OfferedNames, ToolNames, WireNames};
use provider_http::written::{Growth, unwritable, written_list, written_message};
use serde::Serialize;
use serde_json::{Value, json};

use super::contents::{Contents, Kind};
use super::{MessageRules, NAMES, assistant, media, results};

/// A note in place of user content of which nothing can be sent. The API refuses an empty text.
const EMPTY: &str = "[empty message]";

/// Writes messages, and returns the names of tools in them. A longer list continues the form of its beginning.
pub(super) fn write(
    list: &MessageList,
    rules: &MessageRules,
    tools: &OfferedNames<'_>,
) -> Result<(Contents, ToolNames)> {
    if !tools.fit() {
        return rewrite(list, rules, tools);
    }
    let usual = WireNames::usual(IdRule::ANY, NAMES);
    let grown = written_list(list, rules, Contents::default, |contents, message| {
        if !usual.accepts(message) {
            return Ok(Growth::Refused);
        }
        contents.push(Kind::from_message(message), &cached(message, rules, &usual)?);
        Ok(Growth::Added)
    });
    match grown? {
        Some(contents) => Ok((contents, usual.tools)),
        None => rewrite(list, rules, tools),
    }
}

/// Does the same if tool names must be replaced. The replacements depend on all messages.
fn rewrite(
    list: &MessageList,
    rules: &MessageRules,
    tools: &OfferedNames<'_>,
) -> Result<(Contents, ToolNames)> {
    let usual = WireNames::usual(IdRule::ANY, NAMES);
    let own = WireNames {
        ids: CallIds::usual(IdRule::ANY),
        tools: tools.names(list.iter().flat_map(WireNames::tools_in)),
    };
    let mut contents = Contents::default();
    for message in list {
        let parts = if own.is_special(message) {
            parts_of(message, rules, &own)?
        } else {
            cached(message, rules, &usual)?
        };
        contents.push(Kind::from_message(message), &parts);
    }
    Ok((contents, own.tools))
}

/// Returns the parts of a message with its usual names.
fn cached(message: &Message, rules: &MessageRules, usual: &WireNames) -> Result<Bytes> {
    written_message(message, rules, || parts_of(message, rules, usual))
}

/// Writes the parts of a message, with commas between them.
fn parts_of(message: &Message, rules: &MessageRules, names: &WireNames) -> Result<Bytes> {
    match message.content() {
        MessageContent::System(text) => joined(text_part(text).as_slice()),
        MessageContent::User(parts) => user(parts.iter().filter_map(user_part).collect()),
        MessageContent::Assistant(blocks) => joined(&assistant::parts(blocks, rules, names)?),
        MessageContent::Tool(result) => joined(&results::parts(result, rules, names)),
        // A kind of message newer than this crate is sent as its text.
        _ => user(text_part(&message.text()).into_iter().collect()),
    }
}

/// Writes the parts of a user message.
fn user(mut parts: Vec<Value>) -> Result<Bytes> {
    if parts.is_empty() {
        parts.extend(text_part(EMPTY));
    }
    joined(&parts)
}

/// Returns a part of a user message; `None` if it is an empty text.
fn user_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => text_part(text),
        Part::Json(value) => text_part(&value.to_string()),
        other => media::part(other).or_else(|| {
            text_part(&media::note(other).unwrap_or_else(|| "[part of an unknown kind]".to_owned()))
        }),
    }
}

/// Returns a text; `None` if it is empty, since the API refuses that.
fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

/// Writes parts with commas between them.
fn joined(parts: &[impl Serialize]) -> Result<Bytes> {
    let list = serde_json::to_vec(parts).map_err(unwritable)?;
    let inside = list.strip_prefix(b"[").and_then(|list| list.strip_suffix(b"]"));
    Ok(Bytes::copy_from_slice(inside.unwrap_or_default()))
}
