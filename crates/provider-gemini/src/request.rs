//! The body of a request: each message is written once per [`Form`], and kept with the message.
//!
//! Messages are sent one for one, in their order. Two exceptions: system messages are the instruction beside them, and
//! adjacent tool results share one content, as the calls that they answer do.

mod assistant;
mod options;
mod parts;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Error, Message, MessageContent, MessageList, Result, Text};
use bytes::Bytes;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::{unwritable, written_message};
use serde::Serialize;
use serde_json::Value;

/// The names of functions that the API accepts.
const NAMES: NameRule = NameRule::LetterFirst;
/// A note in place of user content of which nothing can be sent. The API refuses an empty text.
const EMPTY: &str = "[empty message]";

/// The form of messages. Equal forms write equal messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// The format of the provider data and opaque blocks that go back.
    pub(crate) format: Text,
    /// Whether calls and results carry ids. Without them, results are matched by name and order.
    pub(crate) sends_call_ids: bool,
    /// Whether the model is older than Gemini 3. Later ones refuse a call without a thought signature, so calls of other
    /// models get a placeholder; and they take media inside tool results.
    pub(crate) is_before_gemini_3: bool,
}

/// Writes the body of `request`. Returns it with its tool names.
pub(crate) fn body(request: &ChatRequest, form: &Form) -> Result<(Bytes, WireNames)> {
    let extra = &request.options.extra;
    let own = extra.get("tools").and_then(Value::as_array).into_iter().flatten();
    let declared = own.filter_map(|tool| tool.get("functionDeclarations")?.as_array()).flatten();
    let verbatim: Vec<&str> = declared.filter_map(|function| function.get("name")?.as_str()).collect();
    let names = WireNames::new(request, IdRule::Any, NAMES, &verbatim);
    let mut json = Vec::new();
    if !extra.contains_key("contents") {
        push_contents(field(&mut json, "contents"), &request.messages, form, &names)?;
    }
    if !extra.contains_key("systemInstruction") {
        let system = request.messages.iter().filter(|message| is_system(message));
        let parts = system.map(|message| written(message, form, &names)).collect::<Result<Vec<_>>>()?;
        let parts: Vec<_> = parts.into_iter().filter(|parts| !parts.is_empty()).collect();
        if !parts.is_empty() {
            field(&mut json, "systemInstruction");
            json.extend([br#"{"parts":["#, &*parts.join(&b","[..]), b"]}"].concat());
        }
    }
    if let Some(declared) = options::tools(request, &names)? {
        field(&mut json, "tools").extend_from_slice(&declared);
    }
    let fields = options::fields(request, &names);
    // The API reads both spellings.
    let configs = ["generationConfig", "generation_config"].into_iter().filter_map(|name| fields.get(name));
    let mut counts = configs.flat_map(|config| [config.get("candidateCount"), config.get("candidate_count")]);
    if counts.any(|count| count.is_some_and(|n| !n.is_null() && *n != 1)) {
        return Err(Error::configuration(
            "an answer is one: leave `candidateCount` out of the extra fields, or ask several times",
        ));
    }
    for (name, value) in &fields {
        serde_json::to_writer(field(&mut json, name), value).map_err(unwritable)?;
    }
    json.extend_from_slice(if json.is_empty() { b"{}" } else { b"}" });
    Ok((json.into(), names))
}

/// Begins a field of a body. Its value follows.
fn field<'a>(json: &'a mut Vec<u8>, name: &str) -> &'a mut Vec<u8> {
    json.push(if json.is_empty() { b'{' } else { b',' });
    json.extend_from_slice(Value::from(name).to_string().as_bytes());
    json.push(b':');
    json
}

fn is_system(message: &Message) -> bool {
    matches!(message.content(), MessageContent::System(_))
}

/// Writes the contents. A message without parts is left out, since no content may be empty.
fn push_contents(json: &mut Vec<u8>, messages: &MessageList, form: &Form, names: &WireNames) -> Result<()> {
    json.push(b'[');
    let mut last: Option<&Message> = None;
    for message in messages.iter().filter(|message| !is_system(message)) {
        let parts = written(message, form, names)?;
        if parts.is_empty() {
            continue;
        }
        let is_result = |message: &Message| message.tool_result().is_some();
        if last.is_some_and(is_result) && is_result(message) {
            json.push(b',');
        } else {
            let is_answer = matches!(message.content(), MessageContent::Assistant(_));
            let role = if is_answer { "model" } else { "user" };
            let end = if last.is_some() { "]}," } else { "" };
            json.extend_from_slice(format!(r#"{end}{{"role":"{role}","parts":["#).as_bytes());
        }
        json.extend_from_slice(&parts);
        last = Some(message);
    }
    json.extend_from_slice(if last.is_some() { b"]}]" } else { b"]" });
    Ok(())
}

/// Returns the parts of a message, with commas between them.
fn written(message: &Message, form: &Form, names: &WireNames) -> Result<Bytes> {
    if names.is_special(message) {
        return write(message, form, names);
    }
    written_message(message, form, || write(message, form, names))
}

fn write(message: &Message, form: &Form, names: &WireNames) -> Result<Bytes> {
    match message.content() {
        MessageContent::System(text) => joined(parts::text(text).as_slice()),
        MessageContent::User(content) => user(content.iter().filter_map(parts::of_user).collect()),
        MessageContent::Assistant(blocks) => joined(&assistant::parts_of(blocks, form, names)?),
        MessageContent::Tool(result) => joined(&parts::of_result(result, form, names)),
        // A kind of message newer than this crate is sent as its text.
        _ => user(parts::text(&message.text()).into_iter().collect()),
    }
}

fn user(mut content: Vec<Value>) -> Result<Bytes> {
    if content.is_empty() {
        content.extend(parts::text(EMPTY));
    }
    joined(&content)
}

/// Writes parts with commas between them.
fn joined(parts: &[impl Serialize]) -> Result<Bytes> {
    let list = serde_json::to_vec(parts).map_err(unwritable)?;
    let inside = list.strip_prefix(b"[").and_then(|list| list.strip_suffix(b"]"));
    Ok(Bytes::copy_from_slice(inside.unwrap_or_default()))
}
