//! The answer of `/api/chat` as a [`WireFormat`]: one JSON object a line, or one object if nothing is streamed.
//!
//! **Order** within a line: model, thinking, text, images, tool calls, token counts, end.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, Finish, FinishReason, Media, Text, ToolCallDelta, Usage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::json::{self, Json, Str, count, is_nothing};
use serde_json::Value;

/// One answer of `/api/chat`.
#[derive(Debug, Default)]
pub(crate) struct OllamaChat {
    /// Whether the model of the answer was emitted. Every line repeats it.
    sent_model: bool,
    /// The number of calls so far.
    calls: i64,
}

/// One line of a stream, or the whole answer if nothing is streamed.
#[derive(Default)]
struct Line<'a> {
    model: Str<'a>,
    has_message: bool,
    content: Str<'a>,
    thinking: Str<'a>,
    /// In base64.
    images: Vec<Str<'a>>,
    calls: Vec<ToolCallDelta>,
    /// A boolean.
    done: &'a str,
    done_reason: Str<'a>,
    prompt_eval_count: Option<i64>,
    eval_count: Option<i64>,
    error: &'a str,
}

impl WireFormat for OllamaChat {
    const FRAMING: Framing = Framing::Lines;
    const IGNORED: &'static [&'static str] = &["created_at"];

    fn repeat(&mut self, _spelling: &str) -> bool {
        true
    }

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let mut line = Line::default();
        if let Err(error) = json::read(event.data, |json| line.read(json)) {
            if event.data.starts_with(['{', '[', '"']) {
                return Err(error);
            }
            // The words of a server that crashed, in place of an error line (Q48).
            return Ok(Meaning::Failure(Box::new(Report::read(&Value::from(event.data)))));
        }
        if let Some(model) = line.model.text().filter(|_| !self.sent_model) {
            self.sent_model = true;
            deltas.push_back(Delta::origin(None, Some((&*model).into())));
        }
        deltas.extend(line.thinking.text().as_deref().map(Delta::reasoning));
        deltas.extend(line.content.text().as_deref().map(Delta::text));
        let images = line.images.iter().filter_map(|image| image_of(&image.text()?));
        deltas.extend(images.map(Delta::media));
        if !line.calls.is_empty() {
            for call in &mut line.calls {
                call.index = Some(self.calls);
                self.calls += 1;
            }
            deltas.push_back(DeltaKind::ToolCalls(line.calls).into());
        }
        // A prompt that is cached as a whole has no count.
        let mut usage = Usage::default();
        usage.input_tokens = count(line.prompt_eval_count);
        usage.output_tokens = count(line.eval_count);
        deltas.extend((usage != Usage::default()).then(|| Delta::usage(usage)));
        // An error is a separate line, without a message (Q48). The first line of another server is no answer either.
        let is_answer = line.has_message || matches!(line.done, "true" | "false");
        if !is_answer || !is_nothing(line.error) {
            return Ok(Meaning::from_json(&json::value(event.data)?));
        }
        if line.done == "true" {
            // Versions of 2023 give no reason.
            deltas.extend(line.done_reason.text().map(|reason| Delta::finish(finish_of(&reason))));
            deltas.push_back(Delta::done());
        }
        Ok(Meaning::Piece)
    }
}

impl<'a> Line<'a> {
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "model" => value.text(&mut self.model),
                "message" if value.is_object() => self.message(value),
                "done" => value.raw(&mut self.done),
                "done_reason" => value.text(&mut self.done_reason),
                "prompt_eval_count" => value.number(&mut self.prompt_eval_count),
                "eval_count" => value.number(&mut self.eval_count),
                "error" => value.raw(&mut self.error),
                _ => value.skip(),
            }
        })
    }

    fn message(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        self.has_message = true;
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "content" => value.text(&mut self.content),
                "thinking" => value.text(&mut self.thinking),
                "images" => {
                    self.images.clear();
                    value.list(|image| image.text(self.images.push_mut(Str::default())))
                }
                "tool_calls" => {
                    self.calls.clear();
                    value.list(|call| read_call(call, self.calls.push_mut(ToolCallDelta::default())))
                }
                _ => value.skip(),
            }
        })
    }
}

/// Reads a call. Ollama sends each one whole. Its `index` is not read: some servers send 0 with all.
fn read_call<'a>(json: Json<'a>, call: &mut ToolCallDelta) -> Option<Json<'a>> {
    let [mut id, mut name, mut arguments] = [Str::default(); 3];
    let rest = json.object(|key| {
        let (key, value) = key.split()?;
        match key.spelling() {
            // Sent by versions of late 2025 and later.
            "id" => value.text(&mut id),
            "function" => value.object(|key| {
                let (key, value) = key.split()?;
                match key.spelling() {
                    "name" => value.text(&mut name),
                    // Some servers write the object into a text (Q20).
                    "arguments" => value.text_or_json(&mut arguments),
                    _ => value.skip(),
                }
            }),
            _ => value.skip(),
        }
    })?;
    call.call_id = id.text().as_deref().map(Text::from);
    call.name = name.text().as_deref().map(Text::from);
    call.arguments_delta = arguments.text().as_deref().map(Text::from);
    Some(rest)
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
