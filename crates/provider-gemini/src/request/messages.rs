//! Messages on the wire, written once and kept.

use advisor_core::{ChatRequest, Message, MessageContent, Part, Result};
use bytes::Bytes;
use provider_http::names::{CallIds, IdRule, OfferedNames, ToolNames, WireNames};
use provider_http::written::{unwritable, written_message};
use serde::Serialize;
use serde_json::{Value, json};

use super::body_writer::{BodyWriter, Form, Kind};
use super::{MessageRules, NAMES, assistant, media, results};

/// Writes the messages of a request. Returns the body so far, and the names of tools in it.
///
/// Fields that the caller wrote into the body replace the messages.
pub(super) fn write(
    request: &ChatRequest,
    rules: &MessageRules,
    tools: &OfferedNames<'_>,
) -> Result<(BodyWriter, ToolNames)> {
    let usual = WireNames::usual(IdRule::ANY, NAMES);
    let messages = request.messages.iter();
    let fits = tools.fit() && messages.clone().all(|message| usual.accepts(message));
    let own = (!fits).then(|| WireNames {
        ids: CallIds::usual(IdRule::ANY),
        tools: tools.names(messages.clone().flat_map(WireNames::tools_in)),
    });
    let mut forms = Vec::with_capacity(request.messages.len());
    for message in messages {
        let parts = match &own {
            Some(names) if names.is_special(message) => parts_of(message, rules, names)?,
            _ => written_message(message, rules, || parts_of(message, rules, &usual))?,
        };
        forms.push(Form { kind: kind_of(message), parts });
    }
    let (system, contents): (Vec<Form>, Vec<Form>) =
        forms.into_iter().partition(|form| form.kind == Kind::System);
    let is_own = |field: &str| request.options.extra.contains_key(field);
    let mut body = BodyWriter::default();
    if !is_own("contents") {
        body.contents(&contents);
    }
    if !system.is_empty() && !is_own("systemInstruction") {
        body.instruction(&system);
    }
    Ok((body, own.unwrap_or(usual).tools))
}

fn kind_of(message: &Message) -> Kind {
    match message.content() {
        MessageContent::System(_) => Kind::System,
        MessageContent::Assistant(_) => Kind::Model,
        MessageContent::Tool(_) => Kind::Results,
        _ => Kind::User,
    }
}

/// Writes the parts of a message, with commas between them.
fn parts_of(message: &Message, rules: &MessageRules, names: &WireNames) -> Result<Bytes> {
    let text = |text: &str| joined(&[json!({ "text": text })]);
    match message.content() {
        MessageContent::System(system) => text(system),
        MessageContent::User(parts) => joined(&parts.iter().map(user_part).collect::<Vec<Value>>()),
        MessageContent::Assistant(blocks) => joined(&assistant::parts(blocks, rules, names)?),
        MessageContent::Tool(result) => joined(&results::parts(result, rules, names)),
        // A kind of message newer than this crate is sent as its text.
        _ => text(&message.text()),
    }
}

/// Returns a part of a user message.
fn user_part(part: &Part) -> Value {
    media::part(part).unwrap_or_else(|| match part {
        Part::Text(text) => json!({ "text": text.as_str() }),
        Part::Json(value) => json!({ "text": value.to_string() }),
        _ => json!({ "text": "[part of an unknown kind]" }),
    })
}

/// Writes parts with commas between them.
fn joined(parts: &[impl Serialize]) -> Result<Bytes> {
    let list = serde_json::to_vec(parts).map_err(unwritable)?;
    let inside = list.strip_prefix(b"[").and_then(|list| list.strip_suffix(b"]"));
    Ok(Bytes::copy_from_slice(inside.unwrap_or_default()))
}
