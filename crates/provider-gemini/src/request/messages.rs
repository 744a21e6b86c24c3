//! Messages on the wire, written once and kept.

use std::sync::{Mutex, PoisonError};

use advisor_core::{ChatRequest, Message, MessageContent, Part, Result};
use bytes::Bytes;
use provider_http::names::{CallIds, IdRule, ToolNames, WireNames};
use serde::Serialize;
use serde_json::{Value, json};

use super::body_writer::{BodyWriter, Form, Kind};
use super::{MessageRules, NAMES, Tools, assistant, media, results, unwritable};

/// The wire forms of a message, one per set of rules it was sent with. Kept with the message.
#[derive(Default)]
struct Forms(Mutex<Vec<(MessageRules, Form)>>);

impl Forms {
    fn written(&self, rules: &MessageRules, write: impl FnOnce() -> Result<Form>) -> Result<Form> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(known, _)| known == rules) {
            return Ok(form.clone());
        }
        let form = write()?;
        forms.push((rules.clone(), form.clone()));
        Ok(form)
    }
}

/// Writes the messages of a request. Returns the body so far, and the names of tools in it.
///
/// Fields that the caller wrote into the body replace the messages.
pub(super) fn write(
    request: &ChatRequest,
    rules: &MessageRules,
    tools: &Tools,
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
        forms.push(match &own {
            Some(names) if names.is_special(message) => form_of(message, rules, names)?,
            _ => {
                message.wire_form(|_| Forms::default()).written(rules, || form_of(message, rules, &usual))?
            }
        });
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

fn form_of(message: &Message, rules: &MessageRules, names: &WireNames) -> Result<Form> {
    let text = |text: &str| vec![json!({ "text": text })];
    let (kind, parts) = match message.content() {
        MessageContent::System(system) => (Kind::System, joined(&text(system))?),
        MessageContent::User(parts) => {
            let parts: Vec<Value> = parts.iter().map(user_part).collect();
            (Kind::User, joined(&parts)?)
        }
        MessageContent::Assistant(blocks) => (Kind::Model, joined(&assistant::parts(blocks, rules, names)?)?),
        MessageContent::Tool(result) => (Kind::Results, joined(&results::parts(result, rules, names))?),
        // A kind of message newer than this crate is sent as its text.
        _ => (Kind::User, joined(&text(&message.text()))?),
    };
    Ok(Form { kind, parts })
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
