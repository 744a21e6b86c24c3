//! Bodies of Anthropic's Messages API, written in code.

use super::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};

/// Builds the body of a streamed answer of the Messages API.
///
/// Blocks open, extend and close as those of Anthropic's server. A piece of another kind begins another block.
/// [`done`](Self::done) adds `message_start` before the events, and after them the stop reason with the token counts.
///
/// # Example
///
/// ```
/// use advisor_test_support::MessagesTranscript;
///
/// let body = MessagesTranscript::new("example-model")
///     .reasoning("A question of weather.")
///     .text("Let me look.")
///     .tool_call("toolu_1", "get_weather", &[r#"{"ci"#, r#"ty":"Oslo"}"#])
///     .usage(10, 5)
///     .done();
/// assert!(body.starts_with(b"event: message_start\n"));
/// assert!(body.ends_with(b"data: {\"type\":\"message_stop\"}\n\n"));
/// ```
#[derive(Clone, Debug)]
pub struct MessagesTranscript {
    model: String,
    body: Body,
    /// The type of the open block.
    open: Option<&'static str>,
    /// The number of blocks.
    blocks: u64,
    finish: Option<String>,
    has_calls: bool,
    usage: (u64, u64),
}

impl MessagesTranscript {
    /// Creates an answer of this model without content.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            body: Body::default(),
            open: None,
            blocks: 0,
            finish: None,
            has_calls: false,
            usage: (0, 0),
        }
    }

    /// Appends a fragment of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.piece("text", &json!({ "type": "text_delta", "text": text }))
    }

    /// Appends a fragment of thinking. Its block gets a signature when it closes.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.piece("thinking", &json!({ "type": "thinking_delta", "thinking": text }))
    }

    /// Appends a tool call: a block with one event for each piece of its arguments.
    #[must_use]
    pub fn tool_call(mut self, id: &str, name: &str, arguments: &[&str]) -> Self {
        self.has_calls = true;
        self.begin("tool_use", &json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
        for piece in arguments {
            self.delta(&json!({ "type": "input_json_delta", "partial_json": piece }));
        }
        self
    }

    /// Sets the stop reason. The default is `tool_use` after a call, else `end_turn`.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        Self { finish: Some(reason.to_owned()), ..self }
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: (input_tokens, output_tokens), ..self }
    }

    /// Appends an error, such as `overloaded_error`. End the answer with [`without_end`](Self::without_end).
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Self {
        self.event(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
    }

    /// Appends any event, named by its `type`.
    #[must_use]
    pub fn event(mut self, data: &Value) -> Self {
        self.body.named_event(data);
        self
    }

    /// Appends these bytes unchanged, without any framing.
    #[must_use]
    pub fn raw_bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body.push(bytes);
        self
    }

    /// Returns the whole body.
    pub fn done(mut self) -> Bytes {
        self.close();
        let reason = self.finish.clone().unwrap_or_else(|| {
            let reason = if self.has_calls { "tool_use" } else { "end_turn" };
            reason.to_owned()
        });
        let usage = json!({ "output_tokens": self.usage.1 });
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        self.event(&json!({ "type": "message_delta", "delta": delta, "usage": usage }))
            .event(&json!({ "type": "message_stop" }))
            .without_end()
    }

    /// Returns the body up to the last event. An open block stays open.
    pub fn without_end(self) -> Bytes {
        let message = json!({
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": { "input_tokens": self.usage.0, "output_tokens": 1 },
        });
        let mut body = Body::default();
        body.named_event(&json!({ "type": "message_start", "message": message }));
        body.push(self.body.into_bytes());
        body.into_bytes()
    }

    fn piece(mut self, kind: &'static str, delta: &Value) -> Self {
        if self.open != Some(kind) {
            let block = match kind {
                "thinking" => json!({ "type": kind, "thinking": "", "signature": "" }),
                _ => json!({ "type": kind, "text": "" }),
            };
            self.begin(kind, &block);
        }
        self.delta(delta);
        self
    }

    fn begin(&mut self, kind: &'static str, block: &Value) {
        self.close();
        let start = json!({ "type": "content_block_start", "index": self.blocks, "content_block": block });
        self.body.named_event(&start);
        self.open = Some(kind);
        self.blocks += 1;
    }

    fn delta(&mut self, delta: &Value) {
        let index = self.blocks.saturating_sub(1);
        self.body.named_event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }

    fn close(&mut self) {
        let Some(kind) = self.open.take() else { return };
        if kind == "thinking" {
            self.delta(&json!({ "type": "signature_delta", "signature": "c2lnbmF0dXJl" }));
        }
        let index = self.blocks.saturating_sub(1);
        self.body.named_event(&json!({ "type": "content_block_stop", "index": index }));
    }
}
