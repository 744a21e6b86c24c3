//! The body of a request to `/api/chat`.
//!
//! Every message is written once and kept with the message, so that a later round writes only its new messages.
//! Messages are sent one for one, in their order.

mod message;
mod options;
#[cfg(test)]
mod tests;

use advisor_core::{ChatRequest, Error, ErrorKind, Result};
use bytes::{Bytes, BytesMut};

/// The size from which a message is a separate piece of the body, so that it is not copied, in bytes.
const LONG: usize = 64 << 10;

/// Writes the body of `request` to a model, in pieces.
///
/// # Errors
/// If the request asks for several answers, or cannot be written as JSON.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool) -> Result<Vec<Bytes>> {
    if request.options.choices.is_some_and(|choices| choices > 1) {
        let message =
            "Ollama gives one answer to a request; leave `ChatOptions::choices` unset, and ask several times";
        return Err(Error::new(ErrorKind::InvalidRequest, message));
    }
    let extra = &request.options.extra;
    let mut body = Pieces::default();
    body.push(b"{");
    if !extra.contains_key("messages") {
        body.push(b"\"messages\":[");
        for (at, message) in request.messages.iter().enumerate() {
            body.push(if at == 0 { b"" } else { b"," });
            body.push_shared(&message::written(message)?);
        }
        body.push(b"],");
    }
    if !extra.contains_key("tools")
        && let Some(tools) = options::tools(request)?
    {
        body.push(b"\"tools\":");
        body.push_shared(&tools);
        body.push(b",");
    }
    // The other fields without their opening brace. There is always one: the model.
    let fields = serde_json::to_vec(&options::write(request, model, streaming)).map_err(unwritable)?;
    body.push(fields.get(1..).unwrap_or_default());
    Ok(body.finish())
}

/// Bytes that are copied together, and long ones that are shared.
#[derive(Default)]
struct Pieces {
    pieces: Vec<Bytes>,
    last: BytesMut,
}

impl Pieces {
    fn push(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
    }

    fn push_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < LONG {
            return self.push(bytes);
        }
        self.pieces.push(self.last.split().freeze());
        self.pieces.push(bytes.clone());
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.pieces.push(self.last.freeze());
        self.pieces
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}
