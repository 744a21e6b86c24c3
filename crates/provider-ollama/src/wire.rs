//! The lines of an answer of `/api/chat`, as servers really send them.
//!
//! Every member is optional, `null` means absent, and a member of an unexpected form counts as absent. Unknown members
//! are ignored, such as durations and log probabilities.

use std::borrow::Cow;

use provider_http::fast_path::Field;
use provider_http::json::lenient::{Number, Str, is_nothing, list, object};
use provider_http::json::repair;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of a [`Line`] that are read.
pub(crate) const LINE: Field = Field::Object(&[
    ("model", Field::Once),
    (
        "message",
        Field::Object(&[
            ("content", Field::Text),
            ("thinking", Field::Text),
            ("images", Field::Read),
            ("tool_calls", Field::Read),
        ]),
    ),
    ("done", Field::Read),
    ("done_reason", Field::Read),
    ("error", Field::Read),
    ("prompt_eval_count", Field::Counts),
    ("eval_count", Field::Counts),
]);

/// One line of a stream, or the whole answer if nothing is streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) message: Option<Message<'a>>,
    /// A boolean.
    #[serde(borrow)]
    done: Str<'a>,
    #[serde(borrow)]
    pub(crate) done_reason: Str<'a>,
    pub(crate) prompt_eval_count: Number,
    pub(crate) eval_count: Number,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A piece of a message, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) content: Str<'a>,
    #[serde(borrow)]
    pub(crate) thinking: Str<'a>,
    #[serde(borrow)]
    images: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "list")]
    pub(crate) tool_calls: Option<Vec<Call<'a>>>,
}

/// A whole tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Call<'a> {
    /// Sent by versions of late 2025 and later.
    #[serde(borrow)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) function: Option<Function<'a>>,
}

/// The function of a call. Its `index` is not read: each entry is another call, and some servers send 0 with all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Str<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Line<'_> {
    /// Checks whether the line belongs to an answer. The first line of another server might not.
    pub(crate) fn is_answer(&self) -> bool {
        self.message.is_some() || matches!(self.done.text(), Some("true" | "false"))
    }

    /// Checks whether it is the last line.
    pub(crate) fn is_last(&self) -> bool {
        self.done.text() == Some("true")
    }

    /// Checks whether it reports an error.
    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some_and(|error| !is_nothing(error))
    }
}

impl Message<'_> {
    /// Returns the images of the model, in base64.
    pub(crate) fn images(&self) -> Vec<String> {
        self.images.and_then(|images| repair::read(images.get()).ok()).unwrap_or_default()
    }
}

impl<'a> Function<'a> {
    /// Returns the arguments as they are written. Some servers write the object into a text (Q20).
    pub(crate) fn arguments(&self) -> Option<Cow<'a, str>> {
        let written = self.arguments?.get();
        if written.starts_with('"') {
            return repair::read::<String>(written).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(written))
    }
}
