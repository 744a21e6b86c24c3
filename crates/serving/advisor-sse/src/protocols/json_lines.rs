//! `JsonLines`: the chunks in their own JSON form.

use std::borrow::Cow;

use advisor_core::{ChatResponse, Chunk, Error, JSON_VERSION, Message, MessageList, StreamItem};

use crate::encoder::Encoder;
use crate::{Failure, Frames};

/// The chunks in their own JSON form, one a line.
///
/// They have provider data, and the messages of the turn at its end. Only messages that are
/// [hidden](advisor_core::Message::is_hidden) are left out, since the model alone sees them. The form is documented in
/// `docs/json.md` of the repository. A failure has its kind and the text for users.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::exhaustive_structs, reason = "the form has no options")]
pub struct JsonLines;

impl Encoder for JsonLines {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("content-type", "application/x-ndjson"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
        ]
    }

    fn begin(&mut self, frames: &mut Frames) {
        frames.line(&StreamItem::Begin { version: JSON_VERSION });
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        frames.line(&*for_clients(chunk));
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        frames.line(&item(failure));
    }

    /// Readers skip an item of an unknown type.
    fn keep_alive(&self) -> &'static [u8] {
        b"{\"type\":\"keep_alive\"}\n"
    }
}

/// Returns the chunk without the messages that only the model sees.
fn for_clients(chunk: &Chunk) -> Cow<'_, Chunk> {
    let (response, with): (_, fn(ChatResponse) -> Chunk) = match chunk {
        Chunk::Completed(response) => (response, Chunk::Completed),
        Chunk::RoundCompleted(response) => (response, Chunk::RoundCompleted),
        _ => return Cow::Borrowed(chunk),
    };
    let transcript = &response.transcript;
    if !transcript.iter().any(Message::is_hidden) {
        return Cow::Borrowed(chunk);
    }
    let shown: MessageList = transcript.iter().filter(|message| !message.is_hidden()).cloned().collect();
    let mut response = response.clone();
    response.transcript = shown;
    Cow::Owned(with(response))
}

/// Returns the item of a failure, without the text of the error.
fn item(failure: &Failure) -> StreamItem {
    StreamItem::Error(Error::new(failure.kind, failure.message))
}
