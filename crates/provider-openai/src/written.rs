//! The messages of a body, in any wire format: each message is written once and kept, and so is the list.

use advisor_core::{Message, MessageList, Result};
use bytes::Bytes;
use provider_http::exchange::BodyBuffer;
use provider_http::names::{CallIds, IdRule, NameRule, OfferedNames, ToolNames, WireNames};
use provider_http::written::{Growth, unwritable, written_list, written_message};

/// The tool names that OpenAI and most compatible servers accept.
pub(crate) const NAMES: NameRule = NameRule::UP_TO_64;

/// The form in which a wire format writes messages. Equal values write equal bytes.
pub(crate) trait MessageForm: Clone + PartialEq + Send + Sync + 'static {
    /// The body up to its first message.
    const BEGINNING: &'static [u8];

    /// Returns the call ids that the server accepts.
    fn call_ids(&self) -> IdRule;

    /// Checks whether a message is written the same way at any later time and in any list. Another one is written anew
    /// for each request, and so is the list that holds it.
    fn is_lasting(&self, _message: &Message) -> bool {
        true
    }

    /// Notes what later messages need to know of one that does not last.
    fn note(&mut self, _message: &Message) {}

    /// Writes a message, as one entry of the list or several with commas between them; nothing if the format has no
    /// entry for it.
    ///
    /// # Errors
    /// Those of the writer of JSON.
    fn write(&self, message: &Message, wire: &WireNames) -> serde_json::Result<Vec<u8>>;
}

/// Returns the pieces of a body up to the end of its messages, and the tool names in it. The pieces are written
/// once and reused by later requests.
pub(crate) fn pieces_of<F: MessageForm>(
    messages: &MessageList,
    form: &F,
    tools: &OfferedNames<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    if !tools.fit() {
        return pieces_with_renames(messages, form, tools);
    }
    let usual = usual_names(form);
    let grown = written_list(messages, form, BodyBuffer::default, |buffer, message| {
        if !usual.accepts(message) || !form.is_lasting(message) {
            return Ok(Growth::Refused);
        }
        push::<F>(buffer, &cached(message, form, &usual)?);
        Ok(Growth::Added)
    });
    match grown? {
        Some(buffer) => Ok((pieces::<F>(buffer), usual.tools)),
        None => pieces_with_renames(messages, form, tools),
    }
}

/// Does the same if call ids or tool names must be replaced on the wire, or if a message depends on the time or on
/// others. The replacements depend on all messages.
fn pieces_with_renames<F: MessageForm>(
    messages: &MessageList,
    form: &F,
    tools: &OfferedNames<'_>,
) -> Result<(Vec<Bytes>, ToolNames)> {
    let wire = WireNames {
        ids: CallIds::new(form.call_ids(), messages.iter().flat_map(WireNames::ids_in)),
        tools: tools.names(messages.iter().flat_map(WireNames::tools_in)),
    };
    let usual = usual_names(form);
    let mut informed = form.clone();
    let mut buffer = BodyBuffer::default();
    for message in messages {
        informed.note(message);
        if wire.is_special(message) || !informed.is_lasting(message) {
            push::<F>(&mut buffer, &write(message, &informed, &wire)?);
        } else {
            push::<F>(&mut buffer, &cached(message, form, &usual)?);
        }
    }
    Ok((pieces::<F>(buffer), wire.tools))
}

/// Returns the names that do not depend on the rest of the request.
fn usual_names<F: MessageForm>(form: &F) -> WireNames {
    WireNames::usual(form.call_ids(), NAMES)
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
    written_message(message, form, || write(message, form, usual))
}

fn write<F: MessageForm>(message: &Message, form: &F, wire: &WireNames) -> Result<Bytes> {
    form.write(message, wire).map(Bytes::from).map_err(unwritable)
}
