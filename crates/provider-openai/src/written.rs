//! Request bodies of both wire formats: each message is written once and kept, and so is each set of tools.

use std::sync::Arc;

use advisor_core::{ChatRequest, Message, Result, ToolDefinition};
use bytes::Bytes;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::{self, entries, written_message, written_tools};
use serde_json::{Map, Value};

/// The tool names that OpenAI and most compatible servers accept.
pub(crate) const NAMES: NameRule = NameRule::Word;

/// The form in which a wire format writes messages. Equal values write equal bytes.
pub(crate) trait MessageForm: Clone + PartialEq + Send + Sync + 'static {
    /// The field of a body that holds the messages.
    const LIST: &'static str;

    /// Returns the name of a tool that the caller wrote into the body.
    fn name_of(tool: &Value) -> Option<&str>;

    /// Returns the call ids that the server accepts.
    fn call_ids(&self) -> IdRule;

    /// Checks whether a message is written the same way at any later time and in any list. Another one is written anew
    /// for each request.
    fn is_lasting(&self, _message: &Message) -> bool {
        true
    }

    /// Notes what later messages need to know of one that does not last.
    fn note(&mut self, _message: &Message) {}

    /// Writes the entries of the list for a message, if it has any.
    ///
    /// # Errors
    /// Those of the writer of JSON.
    fn write(&self, message: &Message, wire: &WireNames) -> Result<Bytes>;
}

/// Writes the body of a request, with the tools and the other fields that are made for these names. Returns it with the
/// names. What the caller wrote into the body by itself takes precedence.
pub(crate) fn written_body<F: MessageForm>(
    request: &ChatRequest,
    form: &F,
    tools: impl FnOnce(&WireNames) -> Result<Option<Vec<Bytes>>>,
    fields: impl FnOnce(&WireNames) -> Result<Map<String, Value>>,
) -> Result<(Bytes, Arc<WireNames>)> {
    let own = &request.options.extra;
    let verbatim = own.get("tools").and_then(Value::as_array).into_iter().flatten();
    let verbatim: Vec<&str> = verbatim.filter_map(F::name_of).collect();
    let names = WireNames::new(request, form.call_ids(), NAMES, &verbatim);
    let messages = || written_messages(request, form, &names);
    let messages = (!own.contains_key(F::LIST)).then(messages).transpose()?;
    let tools = if own.contains_key("tools") { None } else { tools(&names)? };
    let body = written::body(&[(F::LIST, messages), ("tools", tools)], &fields(&names)?)?;
    Ok((body, Arc::new(names)))
}

/// Returns the messages as entries of a body. A message is written once, and kept, unless its form depends on the time or on
/// other messages.
fn written_messages<F: MessageForm>(request: &ChatRequest, form: &F, wire: &WireNames) -> Result<Vec<Bytes>> {
    let (mut informed, mut entries) = (form.clone(), Vec::with_capacity(request.messages.len()));
    for message in &request.messages {
        informed.note(message);
        entries.push(match informed.is_lasting(message) {
            true => written_message(message, wire, form, || informed.write(message, wire))?,
            false => informed.write(message, wire)?,
        });
    }
    Ok(entries)
}

/// Returns the tools that the API describes, each in the form of `api`. They are written once per set.
pub(crate) fn written_functions(
    request: &ChatRequest,
    api: &'static str,
    names: &WireNames,
    function: impl Fn(&ToolDefinition) -> Value,
) -> Result<Bytes> {
    let described = request.api_tools();
    written_tools(described, names, &api, || entries(described.definitions().map(function)))
}
