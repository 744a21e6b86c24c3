//! The answer of `/api/chat` as a [`WireFormat`]: one JSON object a line, or one object if nothing is streamed.
//!
//! **Order** within a line: model, thinking, text, images, tool calls, token counts, end.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, Finish, FinishReason, Media, Text, ToolCallDelta, Usage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use provider_http::json::repair;
use serde_json::Value;

use crate::wire::{Call, LINE, Line, Message};

/// One answer of `/api/chat`.
#[derive(Debug, Default)]
pub(crate) struct OllamaChat {
    /// Whether the model of the answer was emitted. Every line repeats it.
    sent_model: bool,
    /// The number of calls so far.
    calls: i64,
}

impl OllamaChat {
    /// Reads an object. `piece` is the meaning of a piece of an answer.
    fn line(
        &mut self,
        line: &Line<'_>,
        json: &str,
        piece: Meaning,
        deltas: &mut VecDeque<Delta>,
    ) -> serde_json::Result<Meaning> {
        if let Some(model) = line.model.text().filter(|_| !self.sent_model) {
            self.sent_model = true;
            deltas.push_back(Delta::origin(None, Some(model.into())));
        }
        if let Some(message) = &line.message {
            self.message(message, deltas);
        }
        deltas.extend(usage_of(line).map(Delta::usage));
        // An error is a separate line, without a message (Q48).
        if line.has_error() || !line.is_answer() {
            return Ok(Meaning::from_json(&repair::read::<Value>(json)?));
        }
        if line.is_last() {
            // Versions of 2023 give no reason.
            deltas.extend(line.done_reason.text().map(|reason| Delta::finish(finish_of(reason))));
            deltas.push_back(Delta::done());
        }
        Ok(piece)
    }

    fn message(&mut self, message: &Message<'_>, deltas: &mut VecDeque<Delta>) {
        deltas.extend(message.thinking.text().map(Delta::reasoning));
        deltas.extend(message.content.text().map(Delta::text));
        let images = message.images().into_iter().filter_map(|image| image_of(&image));
        deltas.extend(images.map(Delta::media));
        let calls = message.tool_calls.iter().flatten();
        let fragments: Vec<_> = calls.map(|call| self.call(call)).collect();
        if !fragments.is_empty() {
            deltas.push_back(DeltaKind::ToolCalls(fragments).into());
        }
    }

    /// Converts a call. Ollama sends each call whole, so each entry is another call.
    fn call(&mut self, call: &Call<'_>) -> ToolCallDelta {
        let mut fragment = ToolCallDelta::default();
        fragment.index = Some(self.calls);
        self.calls += 1;
        fragment.call_id = call.id.text().map(Text::from);
        if let Some(function) = &call.function {
            fragment.name = function.name.text().map(Text::from);
            fragment.arguments_delta = function.arguments().map(Text::from);
        }
        fragment
    }
}

impl WireFormat for OllamaChat {
    const FRAMING: Framing = Framing::Lines;
    const FIELDS: &'static Field = &LINE;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if let Ok(line) = serde_json::from_str(event.data) {
            return self.line(&line, event.data, Meaning::Piece, deltas);
        }
        // JSON that is no object, or that the usual parser refuses.
        let json: Value = match repair::read(event.data) {
            Ok(json) => json,
            // The words of a server that crashed, in place of an error line (Q48).
            Err(_) if !event.data.starts_with(['{', '[', '"']) => {
                return Ok(Meaning::Failure(Box::new(Report::read(&Value::from(event.data)))));
            }
            Err(error) => return Err(error),
        };
        if !json.is_object() {
            return Ok(Meaning::from_json(&json));
        }
        let json = json.to_string();
        self.line(&serde_json::from_str(&json)?, &json, Meaning::Rewritten, deltas)
    }
}

/// Returns an image; `None` if it is no base64. Ollama does not name its type, but its first bytes do.
fn image_of(base64: &str) -> Option<Media> {
    let bytes = STANDARD.decode(base64).ok()?;
    Some(Media::from_bytes(mime_of(&bytes), bytes))
}

/// Returns the type of an image by its first bytes. Servers refuse a type that does not fit the bytes, so an unknown
/// one is no guess such as `image/*`.
fn mime_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'B', b'M', ..] => "image/bmp",
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => "image/tiff",
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f', ..] => "image/avif",
        [_, _, _, _, b'f', b't', b'y', b'p', b'h', b'e', b'i', b'c', ..] => "image/heic",
        _ => "application/octet-stream",
    }
}

/// Returns the token counts; `None` if the line has none. A prompt that is cached as a whole has no count.
fn usage_of(line: &Line<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    usage.input_tokens = line.prompt_eval_count.count();
    usage.output_tokens = line.eval_count.count();
    (usage != Usage::default()).then_some(usage)
}

/// The words for each reason. Ollama also says `stop` if the model calls tools. A word that is missing here ends no
/// call: it may have cut one.
const WORDS: [(FinishReason, &[&str]); 4] = [
    (FinishReason::Stop, &["stop"]),            // Ollama, of its runner
    (FinishReason::Length, &["length"]),        // Ollama, of its runner
    (FinishReason::ToolCalls, &["tool_calls"]), // other servers of this API
    // Ollama, of a request without messages. It loads or unloads the model, and its answer is empty.
    (FinishReason::Empty, &["load", "unload"]),
];

fn finish_of(written: &str) -> Finish {
    let known = WORDS.into_iter().find(|(_, words)| words.contains(&written));
    let reason = known.map_or_else(|| FinishReason::Other(written.into()), |(reason, _)| reason);
    Finish::written(reason, written)
}
