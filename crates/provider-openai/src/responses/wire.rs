//! The wire format of the Responses API, as OpenAI and compatible servers really send it.
//!
//! One [`Event`] is one event of a stream; a [`Response`] is the snapshot in some events, or the whole body if nothing
//! is streamed. Every field is optional, `null` means absent, and unknown fields are skipped. Nested JSON is kept as
//! it is until an event needs it, so that the usual event stays small.

mod item;
mod usage;

use serde::Deserialize;
use serde_json::value::RawValue;

use provider_http::fast_path::Field;
use provider_http::json::lenient::{Number, Str, object};

use crate::wire::Arguments;
pub(super) use item::{Item, ItemKind, KeptItem, Part, kept, kept_list};
pub(super) use usage::TokenCounts;

/// The format name of provider data from the Responses API. Data of a particular server has its host behind it.
pub(crate) const FORMAT: &str = "openai-responses";

/// The name under which the data of an item have its index in the answer. It is removed before they go back.
pub(super) const OUTPUT_INDEX: &str = "output_index";

/// The fields that are read of an [`Event`]; all others are ignored.
pub(super) const EVENT: Field = Field::Object(EVENT_FIELDS);

const EVENT_FIELDS: &[(&str, Field)] = &[
    ("type", Field::Read),
    ("delta", Field::Text),
    ("item_id", Field::Read),
    ("output_index", Field::Read),
    ("content_index", Field::Read),
    ("summary_index", Field::Read),
    ("text", Field::Read),
    ("refusal", Field::Read),
    ("arguments", Field::Read),
    ("name", Field::Read),
    ("item", Field::Whole(&[("arguments", Field::Text)])),
    ("part", Field::Whole(&[("text", Field::Text)])),
    ("annotation", Field::Read),
    ("response", Field::Read),
    ("error", Field::Read),
    ("sequence_number", Field::Padding),
    ("obfuscation", Field::Padding),
    // Of a whole answer.
    ("object", Field::Read),
    ("output", Field::Read),
];

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) delta: Str<'a>,
    #[serde(borrow)]
    pub(super) item_id: Str<'a>,
    pub(super) output_index: Number,
    pub(super) content_index: Number,
    pub(super) summary_index: Number,
    /// The whole text of a part at its end.
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) refusal: Str<'a>,
    /// The whole arguments at the end of a call. A few servers send them without an item (Q59).
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    #[serde(borrow, deserialize_with = "kept")]
    pub(super) item: Option<KeptItem<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) part: Option<Box<Part<'a>>>,
    #[serde(borrow)]
    pub(super) annotation: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) response: Option<Box<Response<'a>>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Str<'a>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

impl Event<'_> {
    /// Checks whether the event is no event of a stream, but a whole answer.
    pub(super) fn is_whole(&self) -> bool {
        self.kind.text().is_none() && (self.object.text() == Some("response") || self.output.is_some())
    }
}

/// The state of an answer: in its first events, in its last one, or alone as a whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "kept_list")]
    pub(super) output: Vec<KeptItem<'a>>,
    #[serde(deserialize_with = "object")]
    pub(super) usage: Option<TokenCounts>,
}

/// The reason why an answer is incomplete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub(super) reason: Str<'a>,
}

#[cfg(test)]
mod tests;
