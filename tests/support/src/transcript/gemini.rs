//! Bodies of Gemini's `streamGenerateContent`, written in code.

use super::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use std::borrow::Borrow;

/// Builds the body of a streamed answer of Gemini's API: server-sent events, each with one part.
///
/// Calls arrive whole. [`done`](Self::done) appends the event with the finish reason and the token counts.
///
/// # Example
///
/// ```
/// use advisor_test_support::GeminiTranscript;
/// use serde_json::json;
///
/// let body = GeminiTranscript::new("example-model")
///     .reasoning("A question of weather.")
///     .text("Let me look.")
///     .tool_call("call_1", "get_weather", json!({"city": "Oslo"}))
///     .usage(10, 5)
///     .done();
/// assert!(body.starts_with(b"data: {"));
/// ```
#[derive(Clone, Debug)]
pub struct GeminiTranscript {
    model: String,
    body: Body,
    finish: String,
    usage: (u64, u64),
}

impl GeminiTranscript {
    /// Creates an answer of this model without parts.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), body: Body::default(), finish: "STOP".to_owned(), usage: (0, 0) }
    }

    /// Appends a fragment of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.part(json!({ "text": text }))
    }

    /// Appends a fragment of a thought.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.part(json!({ "text": text, "thought": true }))
    }

    /// Appends a tool call.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: impl Borrow<Value>) -> Self {
        self.part(json!({ "functionCall": { "id": id, "name": name, "args": arguments.borrow() } }))
    }

    /// Appends any part of the content.
    #[must_use]
    pub fn part(self, part: impl Borrow<Value>) -> Self {
        let content = json!({ "parts": [part.borrow()], "role": "model" });
        let model = self.model.clone();
        self.event(json!({ "candidates": [{ "content": content, "index": 0 }], "modelVersion": model }))
    }

    /// Sets the finish reason. The default is `STOP`, also after calls.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        Self { finish: reason.to_owned(), ..self }
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: (input_tokens, output_tokens), ..self }
    }

    /// Appends an error with its HTTP code and status, such as 503 and `UNAVAILABLE`. End the answer with
    /// [`without_end`](Self::without_end).
    #[must_use]
    pub fn error(self, code: u16, status: &str, message: &str) -> Self {
        self.event(json!({ "error": { "code": code, "message": message, "status": status } }))
    }

    /// Appends an event with this data.
    #[must_use]
    pub fn event(self, data: impl Borrow<Value>) -> Self {
        self.raw_bytes(format!("data: {}\r\n\r\n", data.borrow()))
    }

    /// Appends these bytes unchanged, without any framing.
    #[must_use]
    pub fn raw_bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body.push(bytes);
        self
    }

    /// Returns the whole body.
    pub fn done(self) -> Bytes {
        let (input, output) = self.usage;
        let usage = json!({ "promptTokenCount": input, "candidatesTokenCount": output,
            "totalTokenCount": input.saturating_add(output) });
        let candidate = json!({ "finishReason": self.finish, "index": 0 });
        let model = self.model.clone();
        self.event(json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": model }))
            .without_end()
    }

    /// Returns the body up to the last event.
    pub fn without_end(self) -> Bytes {
        self.body.into_bytes()
    }
}
