//! The wire format of the Responses API, as OpenAI and compatible servers really send it.
//!
//! One [`Event`] is one event of a stream; a [`Response`] is the snapshot in some events, or the whole body if nothing
//! is streamed. Every field is optional, `null` and a value of an unexpected form mean absent, and unknown fields are
//! skipped.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::json::{Json, Str, value};
use serde_json::{Map, Value};

use crate::wire::TokenCounts;

/// The format name of provider data from the Responses API. Data of a particular server has its host behind it.
pub(crate) const FORMAT: &str = "openai-responses";
/// The name under which the data of an item have its index in the answer. It is removed before they go back.
pub(super) const OUTPUT_INDEX: &str = "output_index";

/// One event of a stream.
#[derive(Default)]
pub(super) struct Event<'a> {
    pub(super) kind: Str<'a>,
    pub(super) delta: Str<'a>,
    pub(super) item_id: Str<'a>,
    pub(super) output_index: Option<i64>,
    pub(super) content_index: Option<i64>,
    pub(super) summary_index: Option<i64>,
    /// The whole text of a part at its end.
    pub(super) text: Str<'a>,
    pub(super) refusal: Str<'a>,
    /// The whole arguments at the end of a call. A few servers send them without an item (Q59).
    pub(super) arguments: Str<'a>,
    pub(super) name: Str<'a>,
    pub(super) item: Option<Box<Item<'a>>>,
    pub(super) part: Option<Box<Part<'a>>>,
    pub(super) annotation: &'a str,
    pub(super) response: Option<Box<Response<'a>>>,
    pub(super) error: &'a str,
    object: Str<'a>,
    has_output: bool,
}

/// The state of an answer: in its first events, in its last one, or alone as a whole answer.
#[derive(Default)]
pub(super) struct Response<'a> {
    pub(super) id: Str<'a>,
    pub(super) model: Str<'a>,
    pub(super) status: Str<'a>,
    /// The reason why it is incomplete.
    pub(super) incomplete_reason: Str<'a>,
    pub(super) error: &'a str,
    pub(super) output: Vec<Item<'a>>,
    pub(super) usage: Option<TokenCounts>,
}

/// An output item of an answer: a message, reasoning, a call, or something that the server did.
#[derive(Default)]
pub(super) struct Item<'a> {
    /// Its JSON, which goes back to the server.
    pub(super) raw: &'a str,
    pub(super) id: Str<'a>,
    kind: Str<'a>,
    pub(super) status: Str<'a>,
    pub(super) call_id: Str<'a>,
    pub(super) name: Str<'a>,
    pub(super) arguments: Str<'a>,
    /// The parts of a message, or the raw text of reasoning.
    pub(super) content: Vec<Part<'a>>,
    /// The summary of reasoning.
    pub(super) summary: Vec<Part<'a>>,
    /// A generated image, as base64.
    pub(super) result: Str<'a>,
    pub(super) output_format: Str<'a>,
}

/// The kinds of output items that are read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    FunctionCall,
    Image,
    /// Something that only the server understands, such as a search that it made.
    Other,
}

/// A part of a message or of reasoning.
#[derive(Default)]
pub(super) struct Part<'a> {
    pub(super) kind: Str<'a>,
    pub(super) text: Str<'a>,
    refusal: Str<'a>,
    pub(super) annotations: &'a str,
}

impl<'a> Event<'a> {
    #[inline(always)]
    pub(super) fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.text(&mut self.kind),
                "delta" => value.text(&mut self.delta),
                "item_id" => value.text(&mut self.item_id),
                "output_index" => value.number(&mut self.output_index),
                "content_index" => value.number(&mut self.content_index),
                "sequence_number" | "obfuscation" | "logprobs" => value.skip(),
                "summary_index" => value.number(&mut self.summary_index),
                "text" => value.text(&mut self.text),
                "refusal" => value.text(&mut self.refusal),
                "arguments" => value.text_or_json(&mut self.arguments),
                "name" => value.text(&mut self.name),
                "item" => value.object_in(&mut self.item, |item, value| item.read(value)),
                "part" => value.object_in(&mut self.part, |part, value| part.read(value)),
                "annotation" => value.raw(&mut self.annotation),
                "response" => value.object_in(&mut self.response, |response, value| response.read(value)),
                "error" => value.raw(&mut self.error),
                "object" => value.text(&mut self.object),
                "output" => {
                    self.has_output = true;
                    value.skip()
                }
                _ => value.skip(),
            }
        })
    }

    /// Checks whether the event is no event of a stream, but a whole answer.
    pub(super) fn is_whole(&self) -> bool {
        self.kind.is_empty() && (self.object.is("response") || self.has_output)
    }
}

impl<'a> Response<'a> {
    pub(super) fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "id" => value.text(&mut self.id),
                "model" => value.text(&mut self.model),
                "status" => value.text(&mut self.status),
                "incomplete_details" => value.object(|key| match key.is("reason") {
                    Some(value) => value.text(&mut self.incomplete_reason),
                    None => key.skip(),
                }),
                "error" => value.raw(&mut self.error),
                "output" => {
                    self.output.clear();
                    value.list(|value| {
                        self.output.push(Item::default());
                        self.output.last_mut()?.read(value)
                    })
                }
                "usage" => value.object_in(&mut self.usage, |usage, value| usage.read(value)),
                _ => value.skip(),
            }
        })
    }
}

impl<'a> Item<'a> {
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.raw(&mut self.raw)?;
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "id" => value.text(&mut self.id),
                "type" => value.text(&mut self.kind),
                "status" => value.text(&mut self.status),
                "call_id" => value.text(&mut self.call_id),
                "name" => value.text(&mut self.name),
                "arguments" => value.text_or_json(&mut self.arguments),
                "content" => read_parts(value, &mut self.content),
                "summary" => read_parts(value, &mut self.summary),
                "result" => value.text(&mut self.result),
                "output_format" => value.text(&mut self.output_format),
                _ => value.skip(),
            }
        })
    }

    pub(super) fn kind(&self) -> ItemKind {
        match self.kind_name() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::FunctionCall,
            "image_generation_call" => ItemKind::Image,
            _ => ItemKind::Other,
        }
    }

    /// Returns the type as the server wrote it.
    pub(super) fn kind_name(&self) -> &'a str {
        if self.kind.is_empty() { "item" } else { self.kind.spelling() }
    }

    /// Returns the bytes of a generated image.
    pub(super) fn image(&self) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(&*self.result.text()?).ok()?;
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// Checks whether the server stopped in the middle of the item.
    pub(super) fn is_cut(&self) -> bool {
        self.status.is("incomplete") || self.status.is("in_progress")
    }

    /// Returns the item unchanged.
    pub(super) fn value(&self) -> Value {
        value(self.raw).unwrap_or_default()
    }

    /// Returns the fields that go back to the server beside the known ones, such as a message's `phase`.
    ///
    /// The id does not: without storage the server looks in vain for the item behind it (langchain-ai/langchain#38372).
    pub(super) fn extras(&self) -> Map<String, Value> {
        const KNOWN: [&str; 8] = ["arguments", "call_id", "content", "id", "name", "role", "status", "type"];
        let Value::Object(mut fields) = self.value() else { return Map::new() };
        fields.retain(|key, value| !KNOWN.contains(&key.as_str()) && !value.is_null());
        fields
    }
}

fn read_parts<'a>(json: Json<'a>, parts: &mut Vec<Part<'a>>) -> Option<Json<'a>> {
    parts.clear();
    json.objects(|part| {
        parts.push(Part::default());
        parts.last_mut()?.read(part)
    })
}

impl<'a> Part<'a> {
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.text(&mut self.kind),
                "text" => value.text(&mut self.text),
                "refusal" => value.text(&mut self.refusal),
                "annotations" => value.raw(&mut self.annotations),
                _ => value.skip(),
            }
        })
    }

    pub(super) fn is_refusal(&self) -> bool {
        self.kind.is("refusal")
    }

    /// Returns the text or the refusal, unless it is empty.
    pub(super) fn said(&self) -> Option<Cow<'a, str>> {
        if self.is_refusal() { self.refusal.text() } else { self.text.text() }
    }
}
