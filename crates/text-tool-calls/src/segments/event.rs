//! `SegmentEvent`, its JSON form, and `Invocation`.

use advisor_core::{ProviderData, Text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kinds of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    #[must_use]
    pub fn for_tool(name: &str) -> Self {
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
/// ```
/// use serde_json::json;
/// use text_tool_calls::segments::{SegmentEvent, SegmentType};
///
/// let start = SegmentEvent::start("call_1", SegmentType::ToolCall).with_metadata("tool_name", json!("weather"));
/// let form = json!({
///     "type": "SEGMENT_START", "segment_id": "call_1", "segment_type": "tool_call",
///     "payload": {"metadata": {"tool_name": "weather"}},
/// });
/// assert_eq!(serde_json::to_value(&start)?, form);
/// assert_eq!(serde_json::from_value::<SegmentEvent>(form)?, start);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentEvent {
    /// Whether the segment starts, goes on or ends.
    #[serde(rename = "type")]
    pub event_type: SegmentEventType,
    /// The id of the segment. For a call it is the id of the invocation.
    pub segment_id: Text,
    /// The kind of the segment, at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_type: Option<SegmentType>,
    /// The data of the event.
    #[serde(default)]
    pub payload: SegmentPayload,
}

/// Whether a segment starts, goes on or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentPayload {
    /// The next characters of the segment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub delta: String,
    /// Data of the segment: `tool_name`, `path`, and at the end of a call `arguments`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The end of the segment, if it did not end by itself: `interrupted` with a `reason`, or `failed` with an
    /// `error`.
    #[serde(flatten)]
    pub broken: Option<BrokenEnd>,
}

/// The end of a segment that did not end by itself. A call with such an end is no invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WireEnd", try_from = "WireEnd")]
#[non_exhaustive]
pub enum BrokenEnd {
    /// The answer was interrupted, for this reason.
    Interrupted(Text),
    /// The answer or the call failed, with this error.
    Failed(Text),
}

/// The JSON form of [`BrokenEnd`].
#[derive(Default, Serialize, Deserialize)]
struct WireEnd {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Text>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Text>,
}

impl From<BrokenEnd> for WireEnd {
    fn from(end: BrokenEnd) -> Self {
        match end {
            BrokenEnd::Interrupted(reason) => {
                Self { interrupted: true, reason: Some(reason), ..Self::default() }
            }
            BrokenEnd::Failed(error) => Self { failed: true, error: Some(error), ..Self::default() },
        }
    }
}

impl TryFrom<WireEnd> for BrokenEnd {
    type Error = &'static str;

    fn try_from(end: WireEnd) -> Result<Self, Self::Error> {
        match end {
            WireEnd { failed: true, error, .. } => Ok(Self::Failed(error.unwrap_or_default())),
            WireEnd { interrupted: true, reason, .. } => Ok(Self::Interrupted(reason.unwrap_or_default())),
            _ => Err("neither interrupted nor failed"),
        }
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
    pub fn start(id: impl Into<Text>, segment_type: SegmentType) -> Self {
        Self { segment_type: Some(segment_type), ..Self::new(SegmentEventType::Start, id.into()) }
    }

    /// Creates a piece of a segment.
    pub fn content(id: impl Into<Text>, delta: impl Into<String>) -> Self {
        let payload = SegmentPayload { delta: delta.into(), ..SegmentPayload::default() };
        Self { payload, ..Self::new(SegmentEventType::Content, id.into()) }
    }

    /// Creates the end of a segment.
    pub fn end(id: impl Into<Text>) -> Self {
        Self::new(SegmentEventType::End, id.into())
    }

    fn new(event_type: SegmentEventType, segment_id: Text) -> Self {
        Self { event_type, segment_id, segment_type: None, payload: SegmentPayload::default() }
    }

    /// Adds data.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.payload.metadata.insert(key.into(), value.into());
        self
    }

    /// Makes it the end of a segment that did not end by itself.
    #[must_use]
    pub fn with_broken_end(mut self, broken: BrokenEnd) -> Self {
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
