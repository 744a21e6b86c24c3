//! The body of a request: each message is written once, and kept with the message.
//!
//! Roles take turns, and the results of tools come first: several messages of the chain become one of the API.

mod assistant;
mod parts;
mod server_tools;
#[cfg(test)]
mod tests;
mod tools;

use advisor_core::{
    ChatOptions, ChatRequest, Message, MessageContent, MessageList, ResponseFormat, Result, Text,
};
use bytes::Bytes;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::{self, unwritable, written_message};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::caching::PromptCaching;
use crate::wire::CONTAINER;
use server_tools::{Pairs, SentAs, own_data};
use tools::Offered;

/// The call ids that the API accepts (Q69).
const CALL_IDS: IdRule = IdRule::Word(usize::MAX);
/// The tool names that the API accepts.
const TOOL_NAMES: NameRule = NameRule::Word;
/// The maximum number of tokens of an answer if the request names none. The API demands a number, and every model
/// that it serves accepts this one.
const MAX_TOKENS: u64 = 8192;
/// A note in place of user content of which nothing can be sent. The API refuses an empty message.
const EMPTY: &str = "[empty message]";

/// The settings of a model that affect the bodies of its requests.
#[derive(Debug, Clone)]
pub(crate) struct BodySettings {
    pub(crate) streaming: bool,
    pub(crate) caching: PromptCaching,
    /// Definitions of tools in the form of the API.
    pub(crate) definitions: Vec<Value>,
}

impl Default for BodySettings {
    fn default() -> Self {
        Self { streaming: true, caching: PromptCaching::Off, definitions: Vec::new() }
    }
}

/// The form of messages: the format of the provider data and opaque blocks that go back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Form(Text);

/// Writes the body of `request` to a model, and returns it with its tool names. Provider data and opaque blocks of `format` go back in it.
pub(crate) fn body(
    request: &ChatRequest,
    model: &str,
    format: &Text,
    settings: &BodySettings,
) -> Result<(Bytes, WireNames)> {
    let is_own = |field: &str| request.options.extra.contains_key(field);
    let tools = Offered::new(request, &settings.definitions);
    let names = WireNames::new(request, CALL_IDS, TOOL_NAMES, &tools.verbatim().collect::<Vec<_>>());
    let nothing = MessageList::default();
    let list = if is_own("messages") { &nothing } else { &request.messages };
    let messages = Messages::new(list, format, &names);
    let lists = [
        ("messages", Some(messages.conversation(settings.caching)?)),
        ("system", Some(messages.system(settings.caching)?).filter(|system| !system.is_empty())),
        ("tools", Some(tools.written(&names, settings.caching)?).filter(|tools| !tools.is_empty())),
    ];
    let lists =
        lists.map(|(name, list)| (name, list.filter(|_| !is_own(name)).map(|list| vec![list.into()])));
    let mut options = options(&request.options, model, settings, tools.tool_choice(&names));
    if let Some(id) = container(list, format) {
        // The caller may name another one, or only what to load into it.
        if let Value::Object(fields) = options.entry(CONTAINER).or_insert_with(|| id.clone()) {
            fields.entry("id").or_insert(id);
        }
    }
    Ok((written::body(&lists, &options)?, names))
}

/// Returns the author of a message on the wire. A kind of message newer than this crate is sent as the user's text.
fn role(message: &Message) -> &'static str {
    match message.content() {
        MessageContent::System(_) => "system",
        MessageContent::Assistant(_) => "assistant",
        _ => "user",
    }
}

/// Returns the messages: those of the system first, and the results of tools before the other messages of their
/// turn of the user.
fn results_first(list: &MessageList) -> Vec<&Message> {
    let mut messages: Vec<&Message> = list.iter().collect();
    messages.sort_by_key(|message| role(message) != "system");
    for turn in messages.chunk_by_mut(|one, other| role(one) == role(other)) {
        turn.sort_by_key(|message| message.tool_result().is_none());
    }
    messages
}

/// Checks whether a message is content of the user beside results of tools. Such a message begins a turn.
///
/// The server may wait for results in the running turn, or for the next request, also over several answers. So all of it
/// goes back, until the user's next message.
fn begins_turn(message: &Message) -> bool {
    role(message) == "user" && message.tool_result().is_none()
}

/// Returns the id of the container that the running turn named last.
///
/// The API needs it for calls that a program in the container made, and a paused answer continues in it. An answer need
/// not name it again. Containers expire, so that of an earlier turn is not sent.
fn container(messages: &MessageList, format: &Text) -> Option<Value> {
    let turn = messages.iter().rev().take_while(|message| !begins_turn(message));
    let reports =
        turn.flat_map(|message| message.blocks().iter().rev()).flat_map(|block| own_data(block, format));
    reports.filter_map(|report| report.get(CONTAINER)?.get("id")).next().cloned()
}

/// The messages of a body.
struct Messages<'a> {
    messages: Vec<&'a Message>,
    form: Form,
    names: &'a WireNames,
    pairs: Pairs<'a>,
}

impl<'a> Messages<'a> {
    fn new(list: &'a MessageList, format: &'a Text, names: &'a WireNames) -> Self {
        let messages = results_first(list);
        let ended = messages.iter().rposition(|message| begins_turn(message)).map_or(0, |last| last + 1);
        let answers = messages.iter().enumerate().map(|(place, message)| (*message, place >= ended));
        let pairs = Pairs::new(answers, format);
        Self { messages, form: Form(format.clone()), names, pairs }
    }

    /// Returns the messages but those of the system. The last one that is not ephemeral is marked for the cache.
    fn conversation(&self, caching: PromptCaching) -> Result<Vec<u8>> {
        let (messages, mut json) = (&self.messages, Vec::new());
        let stable = messages.iter().rposition(|message| !message.is_ephemeral());
        let mut last = None;
        for (place, message) in messages.iter().enumerate().filter(|(_, message)| role(message) != "system") {
            let blocks = self.written(message)?;
            if !blocks.is_empty() {
                let role = role(message);
                if last == Some(role) {
                    json.push(b',');
                } else {
                    let end = if last.is_some() { "]}," } else { "" };
                    json.extend_from_slice(format!(r#"{end}{{"role":"{role}","content":["#).as_bytes());
                }
                json.extend_from_slice(&blocks);
                last = Some(role);
            }
            // The last block of an answer may be thinking, which cannot be marked.
            if Some(place) == stable && last == Some("user") {
                caching.mark(&mut json);
            }
        }
        if last.is_some() {
            json.extend_from_slice(b"]}");
        }
        Ok(json)
    }

    /// Returns the blocks of the system messages. The last one before the first ephemeral one is marked for the cache.
    fn system(&self, caching: PromptCaching) -> Result<Vec<u8>> {
        let mut json = Vec::new();
        let system = self.messages.iter().take_while(|message| role(message) == "system");
        let mut stable = true;
        for message in system {
            let blocks = self.written(message)?;
            if blocks.is_empty() {
                continue;
            }
            if stable && message.is_ephemeral() {
                stable = false;
                caching.mark(&mut json);
            }
            if !json.is_empty() {
                json.push(b',');
            }
            json.extend_from_slice(&blocks);
        }
        if stable {
            caching.mark(&mut json);
        }
        Ok(json)
    }

    /// Returns the content blocks of a message, separated by commas. Empty if there is nothing to send.
    fn written(&self, message: &Message) -> Result<Bytes> {
        let is_whole = message.blocks().iter().all(|block| self.pairs.sent_as(block) == SentAs::Itself);
        match is_whole {
            true => written_message(message, self.names, &self.form, || self.write(message)),
            false => self.write(message),
        }
    }

    fn write(&self, message: &Message) -> Result<Bytes> {
        let mut blocks = Blocks::default();
        let user = |blocks: &mut Blocks, content: Vec<Value>| {
            let empty = if content.is_empty() { parts::text(EMPTY) } else { None };
            content.iter().chain(&empty).try_for_each(|block| blocks.push(block))
        };
        let written = match message.content() {
            MessageContent::System(text) => parts::text(text).iter().try_for_each(|block| blocks.push(block)),
            MessageContent::User(content) => user(&mut blocks, parts::blocks(content)),
            MessageContent::Assistant(answer) => {
                assistant::push(&mut blocks, answer, &self.form.0, self.names, &self.pairs)
            }
            MessageContent::Tool(result) => blocks.push(&parts::result(result, self.names)),
            _ => user(&mut blocks, parts::text(&message.text()).into_iter().collect()),
        };
        written.map(|()| blocks.0.into()).map_err(unwritable)
    }
}

/// Content blocks in JSON, separated by commas. Empty if there is nothing to send.
#[derive(Debug, Default)]
struct Blocks(Vec<u8>);

impl Blocks {
    /// Appends a block.
    fn push(&mut self, block: &impl Serialize) -> serde_json::Result<()> {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, block)
    }
}

/// Returns the fields beside messages, system and tools. The caller's extra fields come last and override others.
fn options(
    options: &ChatOptions,
    model: &str,
    settings: &BodySettings,
    tool_choice: Option<Value>,
) -> Map<String, Value> {
    // The tokens for thinking must be fewer than all.
    let thinking = options.extra.get("thinking").and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let usual = thinking.unwrap_or_default().saturating_add(MAX_TOKENS);
    let mut fields = written::fields([
        ("model", Some(model.into())),
        ("max_tokens", Some(options.max_tokens.map_or(usual, u64::from).into())),
        ("stream", Some(settings.streaming.into())),
        ("temperature", options.temperature.map(Value::from)),
        ("top_p", options.top_p.map(Value::from)),
        ("stop_sequences", (!options.stop.is_empty()).then(|| json!(options.stop))),
        ("tool_choice", tool_choice),
    ]);
    fields.extend(options.extra.clone());
    // The schema of the answer stands beside the caller's other output settings. The API has no form for an object without
    // a schema.
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = &options.response_format {
        let config = fields.entry("output_config").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            config.entry("format").or_insert_with(|| json!({ "type": "json_schema", "schema": schema }));
        }
    }
    fields
}
