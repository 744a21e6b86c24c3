//! The messages of a body, in any wire format: each message is written once and kept, and so is the list.

use std::sync::{Mutex, PoisonError};

use advisor_core::{ChatRequest, Error, ErrorKind, Message, MessageList, Result, Text, ToolChoice};
use bytes::Bytes;
use provider_http::exchange::BodyBuffer;
use provider_http::names::{CallIds, IdRule, NameRule, ToolNames, WireNames};
use serde_json::Value;

/// How a wire format writes messages. Equal values write equal bytes.
pub(crate) trait MessageForm: Clone + PartialEq + Send + Sync + 'static {
    /// The body up to its first message.
    const BEGINNING: &'static [u8];

    /// Returns the call ids that the server accepts.
    fn call_ids(&self) -> IdRule;

    /// Writes a message, as one entry of the list or several with commas between them; nothing if the format has no
    /// entry for it.
    ///
    /// # Errors
    /// Those of the writer of JSON.
    fn write(&self, message: &Message, wire: &WireNames) -> serde_json::Result<Vec<u8>>;
}

/// The tool names in a request, beside those in its messages.
#[derive(Default)]
pub(crate) struct Tools<'a> {
    /// The names of the tools that may be called, and the one in the tool choice.
    offered: Vec<&'a Text>,
    /// The names of the tools that the caller wrote into the body.
    verbatim: Vec<&'a str>,
}

impl<'a> Tools<'a> {
    /// Collects the names of a request. `name_of` finds the name in a tool on the wire.
    pub(crate) fn of(request: &'a ChatRequest, name_of: fn(&'a Value) -> Option<&'a str>) -> Self {
        let chosen = match &request.options.tool_choice {
            Some(ToolChoice::Tool(name)) => Some(name),
            _ => None,
        };
        let own = request.options.extra.get("tools").and_then(Value::as_array);
        Self {
            offered: request.tools.definitions().map(|tool| &tool.name).chain(chosen).collect(),
            verbatim: own.into_iter().flatten().filter_map(name_of).collect(),
        }
    }

    /// Returns the names on the wire, with those that an answer may use.
    pub(crate) fn offered_in(&self, names: ToolNames) -> ToolNames {
        let verbatim: Vec<Text> = self.verbatim.iter().map(|name| Text::from(*name)).collect();
        names.with_offered(self.offered.iter().copied().chain(&verbatim))
    }

    /// Checks whether all offered names can be sent unchanged.
    fn fit(&self) -> bool {
        self.offered.iter().all(|name| NameRule::UP_TO_64.accepts(name))
    }

    /// Returns the wire names of a request whose messages contain the names `in_messages`.
    fn names<'m>(&self, in_messages: impl Iterator<Item = &'m Text>) -> ToolNames
    where
        'a: 'm,
    {
        ToolNames::new(NameRule::UP_TO_64, &self.verbatim, self.offered.iter().copied().chain(in_messages))
    }
}

/// The wire forms of a message, one per form it was sent in. Kept with the message.
struct Forms<F>(Mutex<Vec<(F, Bytes)>>);

impl<F: MessageForm> Forms<F> {
    fn written(&self, form: &F, write: impl FnOnce() -> Result<Bytes>) -> Result<Bytes> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, written)) = forms.iter().find(|(known, _)| known == form) {
            return Ok(written.clone());
        }
        let written = write()?;
        forms.push((form.clone(), written.clone()));
        Ok(written)
    }
}

/// The written form of a list of messages. Kept with the list.
#[derive(Clone)]
struct WrittenList<F> {
    form: F,
    buffer: BodyBuffer,
}

/// Returns the pieces of a body up to the end of its messages, and the tool names in it. The pieces are written
/// once and reused by later requests.
pub(crate) fn pieces_of<F: MessageForm>(
    messages: &MessageList,
    form: &F,
    tools: &Tools<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    if !tools.fit() {
        return pieces_with_renames(messages, form, tools);
    }
    let usual = usual_names(form);
    let grown = messages.wire_form(
        |known: &WrittenList<F>| known.form == *form,
        |known, new| {
            if !new.iter().all(|message| usual.accepts(message)) {
                return Err(None);
            }
            let nothing = || WrittenList { form: form.clone(), buffer: BodyBuffer::default() };
            let mut written = known.unwrap_or_else(nothing);
            for message in new {
                push::<F>(&mut written.buffer, &cached(message, form, &usual).map_err(Some)?);
            }
            Ok(written)
        },
    );
    match grown {
        Ok(written) => Ok((pieces::<F>(written.buffer), usual.tools)),
        Err(Some(error)) => Err(error),
        Err(None) => pieces_with_renames(messages, form, tools),
    }
}

/// Does the same if call ids or tool names must be replaced on the wire. The replacements depend on all
/// messages.
fn pieces_with_renames<F: MessageForm>(
    messages: &MessageList,
    form: &F,
    tools: &Tools<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    let wire = WireNames {
        ids: CallIds::new(form.call_ids(), messages.iter().flat_map(WireNames::ids_in)),
        tools: tools.names(messages.iter().flat_map(WireNames::tools_in)),
    };
    let usual = usual_names(form);
    let mut buffer = BodyBuffer::default();
    for message in messages {
        if wire.is_special(message) {
            push::<F>(&mut buffer, &write(message, form, &wire)?);
        } else {
            push::<F>(&mut buffer, &cached(message, form, &usual)?);
        }
    }
    Ok((pieces::<F>(buffer), wire.tools))
}

/// Returns the names that do not depend on the rest of the request.
fn usual_names<F: MessageForm>(form: &F) -> WireNames {
    WireNames::usual(form.call_ids(), NameRule::UP_TO_64)
}

/// Appends a message to the body.
fn push<F: MessageForm>(body: &mut BodyBuffer, message: &Bytes) {
    if !message.is_empty() {
        let separator = if body.is_empty() { F::BEGINNING } else { b"," };
        body.push(separator, message);
    }
}

/// Returns the pieces of a body up to the end of its messages.
fn pieces<F: MessageForm>(body: BodyBuffer) -> Vec<Bytes> {
    if body.is_empty() { vec![Bytes::from_static(F::BEGINNING)] } else { body.into_pieces() }
}

/// Returns the usual wire form of a message.
fn cached<F: MessageForm>(message: &Message, form: &F, usual: &WireNames) -> Result<Bytes> {
    message.wire_form(|_| Forms::<F>(Mutex::default())).written(form, || write(message, form, usual))
}

fn write<F: MessageForm>(message: &Message, form: &F, wire: &WireNames) -> Result<Bytes> {
    form.write(message, wire).map(Bytes::from).map_err(unwritable)
}

/// Returns the error for a request that is no JSON.
pub(crate) fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}
