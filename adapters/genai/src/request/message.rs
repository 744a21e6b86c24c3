//! One message of the request.

use advisor_core::{Block, BlockContent, Media, MediaSource, Message, MessageContent, Part, ToolResult};
use genai::chat::{Binary, ChatMessage, ContentPart, MessageContent as Content, ToolCall, ToolResponse};
use provider_http::json::arguments;
use provider_http::media::{inline, note, text_of};
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use serde_json::Value;

use crate::convert::signatures;

/// The form in which messages are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) wire: &'a WireNames,
    /// The format name of data that goes back.
    pub(crate) format: &'a str,
    pub(crate) sends_reasoning: bool,
}

impl Form<'_> {
    /// Returns the message for the client.
    pub(crate) fn message(&self, message: &Message) -> ChatMessage {
        match message.content() {
            MessageContent::System(text) => ChatMessage::system(text.as_str()),
            MessageContent::User(parts) => ChatMessage::user(user(parts)),
            MessageContent::Assistant(blocks) => ChatMessage::assistant(self.assistant(blocks)),
            MessageContent::Tool(result) => ChatMessage::tool(self.result(result)),
            // A kind of message newer than this crate is sent as its text.
            _ => ChatMessage::user(message.text()),
        }
    }

    /// Returns the parts of an answer: what the server signed, then text and calls.
    fn assistant(&self, blocks: &[Block]) -> Content {
        let mut parts: Vec<ContentPart> = blocks.iter().flat_map(|block| self.signed(block)).collect();
        let is_signed = !parts.is_empty();
        for block in blocks {
            match block.content() {
                BlockContent::Text(text) | BlockContent::Refusal(text) if !text.is_empty() => {
                    parts.push(ContentPart::from_text(text));
                }
                BlockContent::Reasoning(text) if self.sends_reasoning && !is_signed && !text.is_empty() => {
                    parts.push(ContentPart::ReasoningContent(text.clone()));
                }
                BlockContent::ToolCall(call) => parts.push(ContentPart::ToolCall(ToolCall {
                    call_id: self.wire.call_id(&call.id).into_owned(),
                    fn_name: self.wire.tool(&call.name).into_owned(),
                    fn_arguments: Value::Object(arguments::as_object(&call.arguments)),
                    thought_signatures: self.own_data(block).find_map(signatures),
                })),
                _ => {}
            }
        }
        Content::from_parts(parts)
    }

    /// Returns the parts that the server signed, as it sent them.
    fn signed(&self, block: &Block) -> Vec<ContentPart> {
        let lists = self.own_data(block).filter(|data| data.is_array());
        lists
            .filter_map(|data| serde_json::from_value::<Vec<ContentPart>>(data.clone()).ok())
            .flatten()
            .collect()
    }

    fn own_data<'b>(&self, block: &'b Block) -> impl Iterator<Item = &'b Value> {
        let own = block.provider_data().iter().filter(|data| data.format == *self.format);
        own.map(|data| &data.value)
    }

    fn result(&self, result: &ToolResult) -> ToolResponse {
        let parts = parts_of_result(result);
        let texts = parts
            .iter()
            .map(|part| text_of(part).unwrap_or_else(|| note(part, "tools answer with text only")));
        let content = texts.collect::<Vec<_>>().join("\n");
        ToolResponse::new(self.wire.call_id(&result.call_id), content)
            .with_fn_name(self.wire.tool(&result.name))
    }
}

fn user(parts: &[Part]) -> Content {
    let texts: Option<Vec<_>> = parts.iter().map(text_of).collect();
    match texts {
        Some(texts) => Content::from_text(texts.join("\n")),
        None => Content::from_parts(parts.iter().map(on_the_wire).collect::<Vec<_>>()),
    }
}

fn on_the_wire(part: &Part) -> ContentPart {
    if let Some(text) = text_of(part) {
        return ContentPart::from_text(text);
    }
    let unsupported = || ContentPart::from_text(note(part, "genai has no field for it"));
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            binary(media).map_or_else(unsupported, ContentPart::Binary)
        }
        _ => unsupported(),
    }
}

/// Returns media given as bytes or as an address. The client knows no files of a provider.
fn binary(media: &Media) -> Option<Binary> {
    let name = media.name.as_ref().map(ToString::to_string);
    match (inline(media), &media.source) {
        (Some((mime, data)), _) => Some(Binary::from_base64(mime, data.into_owned(), name)),
        (None, MediaSource::Url(url)) => Some(Binary::from_url(media.mime.as_str(), url.as_str(), name)),
        _ => None,
    }
}
