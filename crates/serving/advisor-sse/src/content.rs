//! Content as several protocols write it: arguments, results, media, citations, and breaks between texts.

use advisor_core::{BlockId, BlockKind, Citation, Media, MediaSource, Part, Text, ToolCall, ToolResult};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The data of an answer that providers' protocols repeat on their events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "its user makes it")]
pub struct AnswerInfo {
    /// The id, which is unique.
    pub id: Text,
    /// The name in the client's request.
    pub model: Text,
    /// The time in seconds since 1970.
    pub created: u64,
}

/// Returns the arguments of a call as JSON, or as a string if they are no JSON.
pub(crate) fn arguments(text: &str) -> Value {
    if ToolCall::gives_none(text) {
        return Value::Object(serde_json::Map::new());
    }
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()))
}

/// Returns a result as JSON: one text or value as it is, several parts as a list. A text that is JSON stays a text.
pub(crate) fn result(result: &ToolResult) -> Value {
    match result.parts.as_slice() {
        [part] => part_of(part),
        parts => parts.iter().map(part_of).collect(),
    }
}

/// Returns the part of a result, or of a report of progress, as JSON.
pub(crate) fn part_of(part: &Part) -> Value {
    match part {
        Part::Text(text) => Value::String(text.to_string()),
        Part::Json(value) => value.clone(),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// Returns the address of media: its URL, or a data URL. `None` if only the provider has the bytes.
pub(crate) fn url(media: &Media) -> Option<String> {
    match &media.source {
        MediaSource::Url(url) => Some(url.to_string()),
        MediaSource::Bytes(bytes) => Some(format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes))),
        _ => None,
    }
}

/// Returns the text that stands for media in protocols without a place for them: a picture or a link in Markdown. `None` if
/// only the provider has the bytes.
pub fn media_as_text(media: &Media) -> Option<String> {
    let (url, is_image) = (url(media)?, media.mime.starts_with("image/"));
    let of_kind = if is_image { "image" } else { media.mime.as_str() };
    let name = media.name.as_ref().map_or(of_kind, |name| name.as_str());
    let name = name.replace(|char: char| char.is_control() || "[]\\".contains(char), " ");
    // An address that is no data URL is the model's: nothing in it may end the link.
    let in_link = |char: char| !char.is_control() && !char.is_whitespace() && !"()<>\\".contains(char);
    let url = match url.chars().all(in_link) {
        true => url,
        false => {
            url.chars().map(|char| if in_link(char) { char.to_string() } else { escape(char) }).collect()
        }
    };
    Some(format!("{}[{name}]({url})", if is_image { "!" } else { "" }))
}

/// Returns a character in percent-encoding.
fn escape(char: char) -> String {
    char.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Tells where an empty line separates the texts of a turn: between rounds, and around media, which are texts there.
#[derive(Debug, Default)]
pub(crate) struct Breaks {
    last: Option<(BlockId, BlockKind)>,
}

impl Breaks {
    /// Takes note of a piece of a block. Returns whether an empty line precedes it.
    pub(crate) fn precede(&mut self, block: BlockId, kind: BlockKind) -> bool {
        let before = self.last.replace((block, kind));
        before.is_some_and(|(last, last_kind)| {
            let has_media = [kind, last_kind].contains(&BlockKind::Media);
            last.round != block.round || has_media && last != block
        })
    }

    /// Takes note of a piece of reasoning. Returns whether an empty line precedes it: the parts of a summary are blocks.
    pub(crate) fn precede_reasoning(&mut self, block: BlockId) -> bool {
        let before = self.last.replace((block, BlockKind::Reasoning));
        before.is_some_and(|(last, _)| last != block)
    }
}

/// The text that the last citations belong to, as numbers of characters.
#[derive(Debug, Default)]
pub(crate) struct CitedText {
    start: usize,
    end: usize,
}

impl CitedText {
    /// Returns the fields of a citation of an address; `None` without one.
    ///
    /// It belongs to the text up to `end`, from the text of the citation before it on, and not from before `start`.
    /// Without a text between the two, both belong to the same.
    pub(crate) fn citation(&mut self, citation: &Citation, start: usize, end: usize) -> Option<Value> {
        let url = citation.url.as_ref()?;
        if end != self.end {
            *self = Self { start: self.end.max(start), end };
        }
        let title = citation.title.as_ref().unwrap_or(url);
        Some(json!({"url": url, "title": title, "start_index": self.start, "end_index": self.end}))
    }
}
