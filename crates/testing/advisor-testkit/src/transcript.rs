//! `ChatTranscript`: the body of a Chat Completions answer, written in code.

use bytes::Bytes;
use serde_json::{Value, json};
use std::borrow::Borrow;
use std::fmt;

/// The `created` field of every chunk, fixed so that bodies are the same in every run.
const CREATED: u64 = 1_700_000_000;

/// Builds the body of a streamed Chat Completions answer: server-sent events of `chat.completion.chunk` objects.
///
/// Each method appends one event, unless it documents otherwise. The events are those of a well-behaved server.
/// The role comes first, `index` is on every fragment of a tool call, and `id`, `type` and `name` come once.
/// `finish_reason` has a separate event, usage comes in an event without choices, and `[DONE]` is last. For the
/// quirks of other servers, use [`delta`](Self::delta), [`raw`](Self::raw) and [`raw_bytes`](Self::raw_bytes).
///
/// # Example
///
/// ```
/// use advisor_testkit::ChatTranscript;
///
/// let body = ChatTranscript::new("example-model")
///     .text("Let me ")
///     .text("look.")
///     .tool_call(0, "call_1", "get_weather", &[r#"{"ci"#, r#"ty":"Oslo"}"#])
///     .finish("tool_calls")
///     .usage(10, 5)
///     .done();
/// assert!(body.ends_with(b"data: [DONE]\n\n"));
/// ```
#[derive(Clone, Debug)]
pub struct ChatTranscript {
    model: String,
    has_role: bool,
    body: Vec<u8>,
}

impl ChatTranscript {
    /// Creates an empty body whose chunks name this model.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), has_role: false, body: Vec::new() }
    }

    /// Appends a fragment of the answer's text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.with_role().delta(json!({ "content": text }))
    }

    /// Appends a fragment of reasoning, as `reasoning_content`. For servers that call it `reasoning`, use
    /// [`delta`](Self::delta).
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.with_role().delta(json!({ "reasoning_content": text }))
    }

    /// Appends a fragment of a refusal.
    #[must_use]
    pub fn refusal(self, text: &str) -> Self {
        self.with_role().delta(json!({ "refusal": text }))
    }

    /// Appends a tool call: one event with its id and name, then one for each piece of its arguments. Further pieces, as
    /// of interleaved calls, are [`delta`](Self::delta)s.
    #[must_use]
    pub fn tool_call(self, index: i64, id: &str, name: &str, arguments: &[&str]) -> Self {
        let start = self.tool_call_whole(index, id, name, "");
        arguments.iter().fold(start, |transcript, piece| {
            let call = json!({ "index": index, "function": { "arguments": piece } });
            transcript.delta(json!({ "tool_calls": [call] }))
        })
    }

    /// Appends a whole tool call in one event, as many servers send it.
    #[must_use]
    pub fn tool_call_whole(self, index: i64, id: &str, name: &str, arguments: &str) -> Self {
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        self.with_role().delta(json!({ "tool_calls": [call] }))
    }

    /// Ends the answer with an empty delta that has this `finish_reason`.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.event(&json!({}), Some(reason))
    }

    /// Appends an event without choices that reports the token counts.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        let mut chunk = self.chunk(&json!([]));
        if let Some(chunk) = chunk.as_object_mut() {
            let usage = json!({
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "total_tokens": input_tokens.saturating_add(output_tokens),
            });
            chunk.insert("usage".to_owned(), usage);
        }
        self.raw(chunk)
    }

    /// Appends an error. End the answer with [`without_done`](Self::without_done).
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Self {
        self.raw(json!({ "error": { "type": kind, "message": message } }))
    }

    /// Appends an event with this `delta` object, unchanged and without a role before it.
    #[must_use]
    pub fn delta(self, delta: impl Borrow<Value>) -> Self {
        self.event(delta.borrow(), None)
    }

    /// Appends an event with this data, on one line. The data is any JSON, such as `json!({"error": {"message":
    /// "overloaded"}})`, or text that is no JSON.
    #[must_use]
    pub fn raw(self, data: impl fmt::Display) -> Self {
        self.raw_bytes(format!("data: {data}\n\n"))
    }

    /// Appends these bytes unchanged, without any framing.
    #[must_use]
    pub fn raw_bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body.extend_from_slice(bytes.as_ref());
        self
    }

    /// Returns the body with `data: [DONE]` at its end.
    pub fn done(self) -> Bytes {
        self.raw_bytes("data: [DONE]\n\n").without_done()
    }

    /// Returns the body without `[DONE]`.
    pub fn without_done(self) -> Bytes {
        Bytes::from(self.body)
    }

    /// Appends the role, unless it was sent.
    fn with_role(mut self) -> Self {
        if std::mem::replace(&mut self.has_role, true) {
            return self;
        }
        self.delta(json!({ "role": "assistant", "content": "" }))
    }

    fn event(self, delta: &Value, finish_reason: Option<&str>) -> Self {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
        let chunk = self.chunk(&json!([choice]));
        self.raw(chunk)
    }

    fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.model,
            "choices": choices,
        })
    }
}

#[cfg(test)]
mod tests;
