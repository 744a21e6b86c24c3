//! The wire format of Chat Completions, as servers really send it.
//!
//! One [`Event`] is one event of a stream, or the whole body if nothing is streamed: they differ in `delta` and
//! `message` only. Every field is optional, `null` means absent, and unknown fields are skipped. Texts without
//! escapes are borrowed from the event. Rare fields are boxed or not parsed yet, so that the usual event stays
//! small. A value of an unexpected form counts as absent, except the index of a call ([`CallIndex`]). Valid JSON
//! that the reader refuses is [repaired](repair()). One invalid field must not fail the answer.

mod call_index;
mod content;
mod repair_json;
mod tool_call;
mod usage;

use advisor_core::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use provider_http::fast_path::Field;

pub(crate) use call_index::CallIndex;
pub(crate) use content::{Content, Part};
pub(crate) use provider_http::json::lenient::{Few, Str, is_nothing};
pub(crate) use repair_json::{read, repair};
pub(crate) use tool_call::{Arguments, Function, ToolCall};
pub(crate) use usage::{TokenCounts, XGroq};

use provider_http::json::lenient::{Number, list, object};

/// The format name of provider data from Chat Completions, before the host.
pub(crate) const FORMAT: &str = "openai-chat";
/// The key of audio in provider data, and in messages.
pub(crate) const AUDIO: &str = "audio";
/// The key of raw reasoning details in provider data.
pub(crate) const REASONING_DETAILS: &str = "reasoning_details";

/// Returns the format name of data that only the server at this host can read.
///
/// Its signatures and ids mean nothing to another server, which may refuse them.
pub(crate) fn format_of(host: &str) -> Text {
    format!("{FORMAT}@{}", host.to_ascii_lowercase()).into()
}

/// The fields that are read of an [`Event`]; all others are ignored.
pub(crate) const EVENT: Field = Field::Object(EVENT_FIELDS);

const EVENT_FIELDS: &[(&str, Field)] = &[
    ("id", Field::Once),
    ("model", Field::Once),
    ("choices", Field::List(&Field::Object(CHOICE_FIELDS))),
    ("usage", Field::Counts),
    ("x_groq", Field::Read),
    ("error", Field::Read),
    ("citations", Field::Read),
];
const CHOICE_FIELDS: &[(&str, Field)] = &[
    ("index", Field::Read),
    ("delta", Field::Object(DELTA_FIELDS)),
    ("message", Field::Read),
    ("finish_reason", Field::Read),
    ("usage", Field::Counts),
    ("error", Field::Read),
];
const DELTA_FIELDS: &[(&str, Field)] = &[
    ("content", Field::TextOr(&PARTS)),
    ("reasoning_content", Field::Text),
    ("reasoning", Field::Text),
    ("reasoning_details", Field::List(&Field::Whole(&[("text", Field::Joined), ("summary", Field::Joined)]))),
    ("refusal", Field::Text),
    ("tool_calls", Field::List(&Field::Whole(&[("function", Field::Whole(&[("arguments", Field::Text)]))]))),
    ("function_call", Field::Read),
    ("annotations", Field::Read),
    ("images", Field::Read),
    ("audio", Field::Read),
    ("executed_tools", Field::Read),
];
/// Parts of a content. Those of Mistral have thoughts, which are parts, too.
const PARTS: Field = Field::List(&Field::Whole(&[
    ("text", Field::Text),
    ("thinking", Field::List(&Field::Whole(&[("text", Field::Text)]))),
]));

/// One event of a stream, or the whole body of an answer that is not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event<'a> {
    #[serde(borrow)]
    pub(crate) id: Str<'a>,
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    /// Absent in an event that is no chunk of an answer.
    #[serde(borrow, deserialize_with = "list")]
    pub(crate) choices: Option<Few<Choice<'a>>>,
    #[serde(deserialize_with = "object")]
    pub(crate) usage: Option<Box<TokenCounts>>,
    /// Groq's field for usage (Q53), and for failures on its side.
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) x_groq: Option<Box<XGroq<'a>>>,
    /// A text, an object or a list (Q45).
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    /// The sources of the whole answer, which Perplexity and xAI repeat in every event.
    #[serde(borrow)]
    pub(crate) citations: Option<&'a RawValue>,
}

/// An entry of the list of choices.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice<'a> {
    index: Number,
    /// The increment of a stream.
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) delta: Option<Delta<'a>>,
    /// The whole message. In a stream, some servers send it beside the delta (Q49).
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    finish_reason: Str<'a>,
    /// Moonshot's field for usage (Q53).
    #[serde(deserialize_with = "object")]
    pub(crate) usage: Option<Box<TokenCounts>>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// A piece of a message, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Content<'a>,
    /// Used by DeepSeek, xAI, llama.cpp, Z.ai and others.
    #[serde(borrow)]
    pub(crate) reasoning_content: Str<'a>,
    /// Used by Groq, Cerebras, Ollama, OpenRouter, vLLM.
    #[serde(borrow)]
    pub(crate) reasoning: Str<'a>,
    /// Used by OpenRouter and similar gateways. Kept unchanged, because signatures must be sent back with it.
    #[serde(borrow)]
    pub(crate) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) refusal: Str<'a>,
    #[serde(borrow, deserialize_with = "list")]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    /// The single call of the API's first version, now deprecated.
    #[serde(borrow, deserialize_with = "object")]
    pub(crate) function_call: Option<Box<Function<'a>>>,
    #[serde(borrow)]
    pub(crate) annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) images: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) audio: Option<&'a RawValue>,
    /// Runs of Groq's own tools on its side.
    #[serde(borrow)]
    pub(crate) executed_tools: Option<&'a RawValue>,
}

impl Delta<'_> {
    /// Checks whether there are calls.
    #[inline]
    pub(crate) fn calls(&self) -> bool {
        self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) || self.function_call.is_some()
    }

    /// Checks whether there is content other than reasoning and calls.
    #[inline]
    pub(crate) fn speaks(&self) -> bool {
        let has_content = match &self.content {
            Content::Absent => false,
            Content::Text(text) => text.text().is_some(),
            Content::Parts(parts) => parts.iter().any(|part| part.fields.speaks()),
        };
        has_content
            || self.refusal.text().is_some()
            || [self.images, self.audio].into_iter().flatten().any(|json| !is_nothing(json))
    }

    /// Checks whether there is reasoning.
    #[inline]
    pub(crate) fn reasons(&self) -> bool {
        [&self.reasoning, &self.reasoning_content].iter().any(|text| text.text().is_some())
            || self.reasoning_details.is_some_and(|json| !is_nothing(json))
            || matches!(&self.content, Content::Parts(parts) if parts.iter().any(|part| part.fields.reasons()))
    }
}

impl<'a> Choice<'a> {
    /// Returns the number of the choice; 0 if the index is no valid choice number.
    pub(crate) fn number(&self) -> u32 {
        self.index.0.and_then(|index| u32::try_from(index).ok()).unwrap_or_default()
    }

    /// Checks whether the choice is a piece of one.
    pub(crate) fn is_streamed(&self) -> bool {
        self.delta.is_some()
    }

    /// Returns the piece, or all of the message.
    pub(crate) fn piece(&self) -> Option<&Delta<'a>> {
        self.delta.as_ref().or(self.message.as_deref())
    }

    /// Returns the finish reason as written. An empty text and the text `null` mean none (Q31).
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.text().filter(|reason| *reason != "null")
    }
}

#[cfg(test)]
pub(crate) mod tests;
