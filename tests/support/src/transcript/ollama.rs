//! Bodies of Ollama's `/api/chat`, written in code.

use super::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use std::borrow::Borrow;

/// Builds the body of a streamed answer of Ollama's API: lines of JSON, for
/// [`Reply::ndjson`](advisor_testkit::Reply::ndjson).
///
/// Calls arrive whole and without ids. [`done`](Self::done) appends the last line, which has the token counts.
///
/// # Example
///
/// ```
/// use advisor_test_support::OllamaTranscript;
/// use advisor_testkit::Reply;
/// use serde_json::json;
///
/// let body = OllamaTranscript::new("example-model")
///     .reasoning("A question of weather.")
///     .text("Let me look.")
///     .tool_call("get_weather", json!({"city": "Oslo"}))
///     .usage(10, 5)
///     .done();
/// let reply = Reply::ndjson(body);
/// ```
#[derive(Clone, Debug)]
pub struct OllamaTranscript {
    model: String,
    body: Body,
    /// The number of calls.
    calls: u64,
    finish: String,
    usage: (u64, u64),
}

impl OllamaTranscript {
    /// Creates an answer of this model without content.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            body: Body::default(),
            calls: 0,
            finish: "stop".to_owned(),
            usage: (0, 0),
        }
    }

    /// Appends a fragment of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.message(json!({ "role": "assistant", "content": text }))
    }

    /// Appends a fragment of thinking.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.message(json!({ "role": "assistant", "content": "", "thinking": text }))
    }

    /// Appends a tool call.
    #[must_use]
    pub fn tool_call(mut self, name: &str, arguments: impl Borrow<Value>) -> Self {
        let function = json!({ "index": self.calls, "name": name, "arguments": arguments.borrow() });
        self.calls += 1;
        self.message(json!({ "role": "assistant", "content": "", "tool_calls": [{ "function": function }] }))
    }

    /// Appends a line with this message.
    #[must_use]
    pub fn message(self, message: impl Borrow<Value>) -> Self {
        let model = self.model.clone();
        self.line(json!({ "model": model, "message": message.borrow(), "done": false }))
    }

    /// Sets the reason of the end. The default is `stop`, also after calls.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        Self { finish: reason.to_owned(), ..self }
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: (input_tokens, output_tokens), ..self }
    }

    /// Appends an error. End the answer with [`without_end`](Self::without_end).
    #[must_use]
    pub fn error(self, message: &str) -> Self {
        self.line(json!({ "error": message }))
    }

    /// Appends a line with this data.
    #[must_use]
    pub fn line(self, data: impl Borrow<Value>) -> Self {
        self.raw_bytes(format!("{}\n", data.borrow()))
    }

    /// Appends these bytes unchanged.
    #[must_use]
    pub fn raw_bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body.push(bytes);
        self
    }

    /// Returns the whole body.
    pub fn done(self) -> Bytes {
        let last = json!({
            "model": self.model,
            "message": { "role": "assistant", "content": "" },
            "done": true,
            "done_reason": self.finish,
            "prompt_eval_count": self.usage.0,
            "eval_count": self.usage.1,
        });
        self.line(last).without_end()
    }

    /// Returns the body up to the last line.
    pub fn without_end(self) -> Bytes {
        self.body.into_bytes()
    }
}
