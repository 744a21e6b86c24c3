//! Messages in the JSON form of the conventions.

use advisor_core::{
    Block, BlockContent, ChatResponse, FinishReason, Media, MediaSource, Message, MessageContent,
    MessageList, Part, Role, ToolCall,
};
use serde_json::{Value, json};

/// Returns the messages of a request as a JSON list of at most `max_bytes`. The newest ones stay.
pub(super) fn of_request(messages: &MessageList, max_bytes: usize) -> String {
    let texts = Texts { longest: max_bytes / 4 };
    let mut newest_first = within(messages.iter().rev().map(|message| texts.message(message)), max_bytes);
    newest_first.reverse();
    list(&newest_first)
}

/// Returns the message of an answer as a JSON list of at most `max_bytes`.
pub(super) fn of_answer(response: &ChatResponse, max_bytes: usize) -> String {
    let texts = Texts { longest: max_bytes / 4 };
    let mut message = texts.message(response.message());
    if let Value::Object(fields) = &mut message {
        fields.insert("finish_reason".into(), texts.cut(finish_reason(&response.finish.reason)).into());
    }
    list(&within([message].into_iter(), max_bytes))
}

/// Returns as many values as fit, as JSON.
fn within(values: impl Iterator<Item = Value>, max_bytes: usize) -> Vec<String> {
    let mut left = max_bytes.saturating_sub("[]".len());
    let mut fitting = Vec::new();
    for value in values {
        let json = value.to_string();
        let Some(rest) = left.checked_sub(json.len() + ",".len()) else { break };
        left = rest;
        fitting.push(json);
    }
    fitting
}

fn list(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// The words of the conventions; other reasons keep their own.
fn finish_reason(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_call",
        FinishReason::ContentFilter | FinishReason::Refusal => "content_filter",
        FinishReason::Other(word) => word,
        _ => "other",
    }
}

/// Writes messages and cuts their texts.
struct Texts {
    /// The maximum length of a text in bytes.
    longest: usize,
}

impl Texts {
    fn message(&self, message: &Message) -> Value {
        let parts = match message.content() {
            MessageContent::System(text) => vec![self.text("text", text)],
            MessageContent::User(parts) => parts.iter().map(|part| self.part(part)).collect(),
            MessageContent::Assistant(blocks) => {
                blocks.iter().filter_map(|block| self.block(block)).collect()
            }
            MessageContent::Tool(result) => {
                let response = self.cut(&result.text());
                vec![json!({"type": "tool_call_response", "id": result.call_id, "response": response})]
            }
            _ => Vec::new(),
        };
        json!({"role": role(message.role()), "parts": parts})
    }

    fn part(&self, part: &Part) -> Value {
        match part {
            Part::Text(text) => self.text("text", text),
            Part::Json(value) => self.text("text", &value.to_string()),
            Part::Image(media) => self.media("image", media),
            Part::Audio(media) => self.media("audio", media),
            Part::Video(media) => self.media("video", media),
            Part::File(media) => self.media("document", media),
            _ => json!({"type": "other"}),
        }
    }

    /// Returns `None` for content that only the provider understands.
    fn block(&self, block: &Block) -> Option<Value> {
        Some(match block.content() {
            BlockContent::Text(text) | BlockContent::Refusal(text) => self.text("text", text),
            BlockContent::Reasoning(text) => self.text("reasoning", text),
            BlockContent::Media(media) => {
                let modality = media.mime.split('/').next().unwrap_or_default();
                self.media(modality, media)
            }
            BlockContent::ToolCall(call) => self.call(call),
            _ => return None,
        })
    }

    fn call(&self, call: &ToolCall) -> Value {
        let arguments = match call.parsed_arguments() {
            Ok(arguments) if call.arguments.len() <= self.longest => arguments,
            _ => self.cut(&call.arguments).into(),
        };
        json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    }

    fn media(&self, modality: &str, media: &Media) -> Value {
        let mime = &media.mime;
        match &media.source {
            // A data URL is the bytes themselves.
            MediaSource::Url(url) if !url.starts_with("data:") => {
                // The query of a signed address is a key.
                let address = self.cut(url.split(['?', '#']).next().unwrap_or_default());
                json!({"type": "uri", "modality": modality, "mime_type": mime, "uri": address})
            }
            MediaSource::ProviderFile(id) => {
                json!({"type": "file", "modality": modality, "mime_type": mime, "file_id": id})
            }
            MediaSource::Bytes(bytes) => {
                json!({"type": "media", "modality": modality, "mime_type": mime, "bytes": bytes.len()})
            }
            _ => json!({"type": "media", "modality": modality, "mime_type": mime}),
        }
    }

    fn text(&self, kind: &str, text: &str) -> Value {
        json!({"type": kind, "content": self.cut(text)})
    }

    fn cut(&self, text: &str) -> String {
        match text.get(..text.floor_char_boundary(self.longest)) {
            Some(begin) if begin.len() < text.len() => format!("{begin}…"),
            _ => text.to_owned(),
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{Block, BlockContent, Media, Message, MessageList, Part, ToolCall, ToolResult};
    use serde_json::{Value, json};

    use super::of_request;

    fn written(messages: impl IntoIterator<Item = Message>, max_bytes: usize) -> Value {
        let json = of_request(&messages.into_iter().collect::<MessageList>(), max_bytes);
        assert!(json.len() <= max_bytes, "{json}");
        serde_json::from_str(&json).unwrap_or_default()
    }

    #[test]
    fn messages_have_form_of_the_conventions() {
        let call = ToolCall::new("c1", "look", r#"{"at":1}"#);
        let broken = ToolCall::new("c2", "look", "{");
        let messages = [
            Message::system("Be brief."),
            Message::user_parts(vec![
                Part::from("Look."),
                Part::Image(Media::from_url("image/png", "https://example.com/a.png?key=secret")),
                Part::Audio(Media::from_url("audio/wav", "data:audio/wav;base64,AAAA")),
                Part::File(Media::from_bytes("text/plain", "bytes")),
            ]),
            Message::assistant_blocks(vec![
                Block::new(BlockContent::Reasoning("Hm.".into())),
                Block::text("I look."),
                call.clone().into(),
                broken.into(),
            ]),
            Message::tool(ToolResult::new(&call, vec![Part::from("found")])),
        ];
        let expected = json!([
            {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
            {"role": "user", "parts": [
                {"type": "text", "content": "Look."},
                {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://example.com/a.png"},
                {"type": "media", "modality": "audio", "mime_type": "audio/wav"},
                {"type": "media", "modality": "document", "mime_type": "text/plain", "bytes": 5},
            ]},
            {"role": "assistant", "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "text", "content": "I look."},
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": 1}},
                {"type": "tool_call", "id": "c2", "name": "look", "arguments": "{"},
            ]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]},
        ]);
        assert_eq!(written(messages, 4096), expected);
    }

    #[test]
    fn law_r1_long_texts_are_cut_and_old_messages_left_out() {
        let long = "ä\n".repeat(1000);
        let messages = (0..9).map(|number| Message::user(format!("{number}{long}")));
        let written = written(messages, 400);
        let texts: Vec<_> =
            written.as_array().into_iter().flatten().map(|message| &message["parts"][0]["content"]).collect();
        assert!(
            matches!(&texts[..], [.., last] if last.as_str().is_some_and(|text| text.starts_with('8') && text.ends_with('…')))
        );
        assert!((1..3).contains(&texts.len()), "{texts:?}");
    }

    #[test]
    fn no_room_is_an_empty_list() {
        for max_bytes in [2, 20] {
            assert_eq!(written([Message::user("Hi")], max_bytes), json!([]));
        }
    }
}
