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
use provider_http::written::{self, entries, written_message};
use serde_json::{Value, json};

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
    let contents = (!extra.contains_key("contents")).then(|| contents(&request.messages, form, &names));
    let contents = contents.transpose()?.map(|contents| vec![contents.into()]);
    let tools = options::tools(request, &names)?.map(|declared| vec![declared]);
    let mut fields = options::fields(request, &names);
    let system = request.messages.iter().filter_map(|message| match message.content() {
        MessageContent::System(text) => parts::text(text),
        _ => None,
    });
    let system: Vec<Value> = system.collect();
    if !system.is_empty() && !extra.contains_key("systemInstruction") {
        fields.insert("systemInstruction".to_owned(), json!({ "parts": system }));
    }
    // The API reads both spellings.
    let configs = ["generationConfig", "generation_config"].into_iter().filter_map(|name| fields.get(name));
    let mut counts = configs.flat_map(|config| [config.get("candidateCount"), config.get("candidate_count")]);
    if counts.any(|count| count.is_some_and(|n| !n.is_null() && *n != 1)) {
        return Err(Error::configuration(
            "an answer is one: leave `candidateCount` out of the extra fields, or ask several times",
        ));
    }
    Ok((written::body(&[("contents", contents), ("tools", tools)], &fields)?, names))
}

fn is_system(message: &Message) -> bool {
    matches!(message.content(), MessageContent::System(_))
}

/// Writes the contents. A message without parts is left out, since no content may be empty.
fn contents(messages: &MessageList, form: &Form, names: &WireNames) -> Result<Vec<u8>> {
    let mut json = Vec::new();
    let mut last: Option<&Message> = None;
    for message in messages.iter().filter(|message| !is_system(message)) {
        let parts = written_message(message, names, form, || write(message, form, names))?;
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
    if last.is_some() {
        json.extend_from_slice(b"]}");
    }
    Ok(json)
}

/// Writes the parts of a message.
fn write(message: &Message, form: &Form, names: &WireNames) -> Result<Bytes> {
    match message.content() {
        MessageContent::User(content) => user(content.iter().filter_map(parts::of_user).collect()),
        MessageContent::Assistant(blocks) => entries(assistant::parts_of(blocks, form, names)?),
        MessageContent::Tool(result) => entries(parts::of_result(result, form, names)),
        // A kind of message newer than this crate is sent as its text.
        _ => user(parts::text(&message.text()).into_iter().collect()),
    }
}

fn user(mut content: Vec<Value>) -> Result<Bytes> {
    if content.is_empty() {
        content.extend(parts::text(EMPTY));
    }
    entries(content)
}
