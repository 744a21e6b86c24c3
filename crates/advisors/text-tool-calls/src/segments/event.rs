//! `SegmentEvent`, its JSON form, and `Invocation`.

use advisor_core::{ProviderData, Text};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The kinds of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SegmentType {
    /// Text for the user, a refusal included.
    Text,
    /// A call of a tool without a kind of its own.
    ToolCall,
    /// A call of `write_file`; its content is that of the file.
    WriteFile,
    /// A call of `edit_file`; its content is the patch.
    EditFile,
    /// A call of `run_bash`; its content is the command.
    RunBash,
    /// The model's reasoning.
    Reasoning,
    /// Media; its metadata is the item.
    Media,
}

impl SegmentType {
    /// Returns the kind of a call of this tool.
    pub(super) fn for_tool(name: &str) -> Self {
        match name {
            "write_file" => Self::WriteFile,
            "edit_file" => Self::EditFile,
            "run_bash" => Self::RunBash,
            _ => Self::ToolCall,
        }
    }
}

/// An event of a segment: a text, a call or another part of an answer, with an id.
///
/// The events of a segment are one start, any number of contents, and one end. Several segments may be open.
///
/// If the model is called again, all segments of the attempt are void. Each of them has an end that is
/// [interrupted](BrokenEnd::Interrupted), also after its own end.
///
/// # JSON
/// ```json
/// {
///     "type": "SEGMENT_START", "segment_id": "call_1", "segment_type": "tool_call",
///     "payload": {"metadata": {"tool_name": "weather"}}
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SegmentEvent {
    /// Whether the segment starts, goes on or ends.
    #[serde(rename = "type")]
    pub event_type: SegmentEventType,
    /// The id of the segment. For a call it is the id of the invocation.
    pub segment_id: Text,
    /// The kind of the segment, at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_type: Option<SegmentType>,
    /// The data of the event.
    pub payload: SegmentPayload,
}

/// Whether a segment starts, goes on or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(clippy::exhaustive_enums, reason = "start, content, end")]
pub enum SegmentEventType {
    /// The segment starts.
    #[serde(rename = "SEGMENT_START")]
    Start,
    /// More content of the segment.
    #[serde(rename = "SEGMENT_CONTENT")]
    Content,
    /// The segment ends.
    #[serde(rename = "SEGMENT_END")]
    End,
}

/// The data of a [`SegmentEvent`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SegmentPayload {
    /// The next characters of the segment.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub delta: String,
    /// Data of the segment: `tool_name`, `path`, and at the end of a call `arguments`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The end of the segment, if it did not end by itself: `interrupted` with a `reason`, or `failed` with an
    /// `error`.
    #[serde(flatten)]
    pub broken: Option<BrokenEnd>,
}

/// The end of a segment that did not end by itself. A call with such an end is no invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokenEnd {
    /// The answer was interrupted, for this reason.
    Interrupted(Text),
    /// The answer or the call failed, with this error.
    Failed(Text),
}

impl Serialize for BrokenEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (word, key, text) = match self {
            Self::Interrupted(reason) => ("interrupted", "reason", reason),
            Self::Failed(error) => ("failed", "error", error),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(word, &true)?;
        map.serialize_entry(key, text)?;
        map.end()
    }
}

impl BrokenEnd {
    /// Creates the end of a call that the end of the answer cuts off.
    pub(super) fn cut() -> Self {
        Self::Failed("the answer ended within the call".into())
    }
}

impl SegmentEvent {
    /// Creates the start of a segment.
    pub(super) fn start(id: impl Into<Text>, segment_type: SegmentType) -> Self {
        Self { segment_type: Some(segment_type), ..Self::new(SegmentEventType::Start, id.into()) }
    }

    /// Creates a piece of a segment.
    pub(super) fn content(id: impl Into<Text>, delta: impl Into<String>) -> Self {
        let payload = SegmentPayload { delta: delta.into(), ..SegmentPayload::default() };
        Self { payload, ..Self::new(SegmentEventType::Content, id.into()) }
    }

    /// Creates the end of a segment.
    pub(super) fn end(id: impl Into<Text>) -> Self {
        Self::new(SegmentEventType::End, id.into())
    }

    fn new(event_type: SegmentEventType, segment_id: Text) -> Self {
        Self { event_type, segment_id, segment_type: None, payload: SegmentPayload::default() }
    }

    /// Adds data.
    pub(super) fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.payload.metadata.insert(key.into(), value.into());
        self
    }

    /// Makes it the end of a segment that did not end by itself.
    pub(super) fn with_broken_end(mut self, broken: BrokenEnd) -> Self {
        self.payload.broken = Some(broken);
        self
    }
}

/// A call that a handler found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Invocation {
    /// The id of the call and of its segment.
    pub id: Text,
    /// The name of the tool.
    pub name: Text,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Data that goes back to the provider with the call, such as a signature. Empty for a call in text.
    pub provider_data: Vec<ProviderData>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_stable_json_form() {
        let end = SegmentEvent::end("c1").with_metadata("tool_name", "time");
        let interrupted = SegmentEvent::end("c1").with_broken_end(BrokenEnd::Interrupted("no".into()));
        for (event, json) in [
            (
                SegmentEvent::start("c1", SegmentType::RunBash),
                r#"{"type":"SEGMENT_START","segment_id":"c1","segment_type":"run_bash","payload":{}}"#,
            ),
            (
                SegmentEvent::content("c1", "x"),
                r#"{"type":"SEGMENT_CONTENT","segment_id":"c1","payload":{"delta":"x"}}"#,
            ),
            (
                end.clone(),
                r#"{"type":"SEGMENT_END","segment_id":"c1","payload":{"metadata":{"tool_name":"time"}}}"#,
            ),
            (
                end.with_broken_end(BrokenEnd::Failed("no".into())),
                r#"{"type":"SEGMENT_END","segment_id":"c1","payload":{"metadata":{"tool_name":"time"},"failed":true,"error":"no"}}"#,
            ),
            (
                interrupted,
                r#"{"type":"SEGMENT_END","segment_id":"c1","payload":{"interrupted":true,"reason":"no"}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&event).unwrap(), json);
        }
    }
}
