//! The messages of a body, in any wire format: each message is written once and kept.

use advisor_core::{ChatRequest, Message, Result};
use bytes::Bytes;
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::{unwritable, written_message};

/// The tool names that OpenAI and most compatible servers accept.
pub(crate) const NAMES: NameRule = NameRule::Word;

/// The form in which a wire format writes messages. Equal values write equal bytes.
pub(crate) trait MessageForm: Clone + PartialEq + Send + Sync + 'static {
    /// Returns the call ids that the server accepts.
    fn call_ids(&self) -> IdRule;

    /// Checks whether a message is written the same way at any later time and in any list. Another one is written anew
    /// for each request.
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

/// Returns the messages as entries of a body. A message is written once, and kept, unless its form depends on the time or on
/// other messages.
pub(crate) fn written_messages<F: MessageForm>(
    request: &ChatRequest,
    form: &F,
    wire: &WireNames,
) -> Result<Vec<Bytes>> {
    let mut informed = form.clone();
    let mut entries = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        informed.note(message);
        let written = if wire.is_special(message) || !informed.is_lasting(message) {
            informed.write(message, wire).map(Bytes::from).map_err(unwritable)?
        } else {
            let write = || form.write(message, wire).map(Bytes::from).map_err(unwritable);
            written_message(message, form, write)?
        };
        if !written.is_empty() {
            entries.push(written);
        }
    }
    Ok(entries)
}
