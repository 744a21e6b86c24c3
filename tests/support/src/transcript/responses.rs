//! Bodies of OpenAI's Responses API, written in code.

use super::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};

/// Builds the body of a streamed answer of the Responses API.
///
/// Items are added, extended and done as those of OpenAI's server. A piece of another kind begins another item.
/// [`done`](Self::done) appends the last event, which repeats the items and has the token counts.
///
/// # Example
///
/// ```
/// use advisor_test_support::ResponsesTranscript;
///
/// let body = ResponsesTranscript::new("example-model")
///     .reasoning("A question of weather.")
///     .text("Let me look.")
///     .tool_call("call_1", "get_weather", &[r#"{"ci"#, r#"ty":"Oslo"}"#])
///     .usage(10, 5)
///     .done();
/// assert!(body.starts_with(b"event: response.created\n"));
/// ```
#[derive(Clone, Debug)]
pub struct ResponsesTranscript {
    model: String,
    body: Body,
    /// The open item, and its text so far.
    open: Option<(Streaming, String)>,
    /// The items that are done.
    items: Vec<Value>,
    usage: (u64, u64),
    cut: Option<String>,
}

/// The kinds of items whose text streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streaming {
    Text,
    Refusal,
    Reasoning,
}

impl ResponsesTranscript {
    /// Creates an answer of this model without items.
    pub fn new(model: impl Into<String>) -> Self {
        let mut transcript = Self {
            model: model.into(),
            body: Body::default(),
            open: None,
            items: Vec::new(),
            usage: (0, 0),
            cut: None,
        };
        let response = transcript.response("in_progress");
        transcript.body.named_event(&json!({ "type": "response.created", "response": response }));
        transcript
    }

    /// Appends a fragment of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.piece(Streaming::Text, text)
    }

    /// Appends a fragment of a refusal.
    #[must_use]
    pub fn refusal(self, text: &str) -> Self {
        self.piece(Streaming::Refusal, text)
    }

    /// Appends a fragment of the summary of reasoning.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.piece(Streaming::Reasoning, text)
    }

    /// Appends a tool call: an item with one event for each piece of its arguments.
    #[must_use]
    pub fn tool_call(mut self, id: &str, name: &str, arguments: &[&str]) -> Self {
        self.close();
        let item_id = format!("fc_{}", self.items.len());
        let item = |arguments: &str, status: &str| {
            json!({ "type": "function_call", "id": item_id, "call_id": id, "name": name,
                "arguments": arguments, "status": status })
        };
        self.item_event("response.output_item.added", &item("", "in_progress"));
        for piece in arguments {
            self.body.named_event(&json!({ "type": "response.function_call_arguments.delta",
                "item_id": item_id, "output_index": self.items.len(), "delta": piece }));
        }
        let whole = arguments.concat();
        self.body.named_event(&json!({ "type": "response.function_call_arguments.done",
            "item_id": item_id, "output_index": self.items.len(), "arguments": whole }));
        self.end_item(item(&whole, "completed"));
        self
    }

    /// Sets the reason why the answer is incomplete, such as `max_output_tokens`. Without it, the answer completes.
    #[must_use]
    pub fn incomplete(self, reason: &str) -> Self {
        Self { cut: Some(reason.to_owned()), ..self }
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: (input_tokens, output_tokens), ..self }
    }

    /// Appends an error, such as `server_error`. End the answer with [`without_end`](Self::without_end).
    #[must_use]
    pub fn error(self, code: &str, message: &str) -> Self {
        self.event(&json!({ "type": "error", "code": code, "message": message, "param": null }))
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
        let status = if self.cut.is_some() { "incomplete" } else { "completed" };
        let response = self.response(status);
        self.event(&json!({ "type": format!("response.{status}"), "response": response })).without_end()
    }

    /// Returns the body up to the last event. An open item stays open.
    pub fn without_end(self) -> Bytes {
        self.body.into_bytes()
    }

    fn piece(mut self, kind: Streaming, text: &str) -> Self {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.close();
            let item = self.item(kind, "in_progress", &json!([]));
            self.item_event("response.output_item.added", &item);
            self.open = Some((kind, String::new()));
        }
        let (name, part) = match kind {
            Streaming::Text => ("response.output_text.delta", "content_index"),
            Streaming::Refusal => ("response.refusal.delta", "content_index"),
            Streaming::Reasoning => ("response.reasoning_summary_text.delta", "summary_index"),
        };
        let item_id = self.item_id(kind);
        self.body.named_event(&json!({ "type": name, "item_id": item_id,
            "output_index": self.items.len(), part: 0, "delta": text }));
        if let Some((_, all)) = &mut self.open {
            all.push_str(text);
        }
        self
    }

    fn close(&mut self) {
        let Some((kind, text)) = self.open.take() else { return };
        let part = match kind {
            Streaming::Text => json!({ "type": "output_text", "text": text, "annotations": [] }),
            Streaming::Refusal => json!({ "type": "refusal", "refusal": text }),
            Streaming::Reasoning => json!({ "type": "summary_text", "text": text }),
        };
        self.end_item(self.item(kind, "completed", &json!([part])));
    }

    fn end_item(&mut self, item: Value) {
        self.item_event("response.output_item.done", &item);
        self.items.push(item);
    }

    fn item_event(&mut self, name: &str, item: &Value) {
        let event = json!({ "type": name, "output_index": self.items.len(), "item": item });
        self.body.named_event(&event);
    }

    fn item(&self, kind: Streaming, status: &str, parts: &Value) -> Value {
        let id = self.item_id(kind);
        match kind {
            Streaming::Reasoning => json!({ "type": "reasoning", "id": id, "summary": parts }),
            Streaming::Text | Streaming::Refusal => {
                json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": parts })
            }
        }
    }

    fn item_id(&self, kind: Streaming) -> String {
        let prefix = if kind == Streaming::Reasoning { "rs" } else { "msg" };
        format!("{prefix}_{}", self.items.len())
    }

    fn response(&self, status: &str) -> Value {
        let (input, output) = self.usage;
        let usage = (status != "in_progress").then(|| {
            json!({ "input_tokens": input, "output_tokens": output,
                "total_tokens": input.saturating_add(output) })
        });
        let details = self.cut.as_ref().map(|reason| json!({ "reason": reason }));
        json!({
            "id": "resp_1",
            "object": "response",
            "model": self.model,
            "status": status,
            "incomplete_details": details,
            "output": self.items,
            "usage": usage,
        })
    }
}
