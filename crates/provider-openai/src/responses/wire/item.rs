//! An output item of an answer: a message, reasoning, a call, or something that the server did.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::json::lenient::{Object, Str, list};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::{Arguments, read};

/// The known fields of an output item.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(in crate::responses) struct Item<'a> {
    #[serde(borrow)]
    pub(in crate::responses) id: Str<'a>,
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) status: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) call_id: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) name: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) arguments: Arguments<'a>,
    /// The parts of a message, or the raw text of reasoning.
    #[serde(borrow, deserialize_with = "list")]
    pub(in crate::responses) content: Option<Vec<Part<'a>>>,
    /// The summary of reasoning.
    #[serde(borrow, deserialize_with = "list")]
    pub(in crate::responses) summary: Option<Vec<Part<'a>>>,
    /// A generated image, as base64.
    #[serde(borrow)]
    pub(in crate::responses) result: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) output_format: Str<'a>,
}

/// The kinds of output items that are read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::responses) enum ItemKind {
    Message,
    Reasoning,
    FunctionCall,
    Image,
    /// Something that only the server understands, such as a search that it made.
    Other,
}

impl Item<'_> {
    pub(in crate::responses) fn kind(&self) -> ItemKind {
        match self.kind_name() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::FunctionCall,
            "image_generation_call" => ItemKind::Image,
            _ => ItemKind::Other,
        }
    }

    /// Returns the type as the server wrote it.
    pub(in crate::responses) fn kind_name(&self) -> &str {
        self.kind.text().unwrap_or("item")
    }

    /// Returns the bytes of a generated image.
    pub(in crate::responses) fn image(&self) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(self.result.text()?).ok()?;
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// Checks whether the server stopped in the middle of the item.
    pub(in crate::responses) fn is_cut(&self) -> bool {
        matches!(self.status.text(), Some("incomplete" | "in_progress"))
    }
}

/// A part of a message or of reasoning.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(in crate::responses) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(in crate::responses) kind: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) text: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) refusal: Str<'a>,
    #[serde(borrow)]
    pub(in crate::responses) annotations: Option<&'a RawValue>,
}

impl Part<'_> {
    pub(in crate::responses) fn is_refusal(&self) -> bool {
        self.kind.text() == Some("refusal")
    }

    /// Returns the text or the refusal, unless it is empty.
    pub(in crate::responses) fn said(&self) -> Option<&str> {
        if self.is_refusal() { self.refusal.text() } else { self.text.text() }
    }
}

/// An item, and its JSON, which goes back to the server.
#[derive(Debug)]
pub(in crate::responses) struct KeptItem<'a> {
    pub(in crate::responses) raw: &'a RawValue,
    pub(in crate::responses) fields: Item<'a>,
}

impl<'a> KeptItem<'a> {
    pub(in crate::responses) fn read(raw: &'a RawValue) -> serde_json::Result<Self> {
        let fields: Object<_> = serde_json::from_str(raw.get())?;
        Ok(Self { raw, fields: fields.0.unwrap_or_default() })
    }

    /// Returns the length of its JSON.
    pub(in crate::responses) fn bytes(&self) -> usize {
        self.raw.get().len()
    }

    /// Returns the item unchanged.
    pub(in crate::responses) fn value(&self) -> Value {
        read(self.raw.get()).unwrap_or_default()
    }

    /// Returns the fields that go back to the server beside the known ones, such as a message's `phase`.
    ///
    /// The id does not: without storage the server looks in vain for the item behind it (langchain-ai/langchain#38372).
    pub(in crate::responses) fn extras(&self) -> Map<String, Value> {
        const KNOWN: [&str; 8] = ["arguments", "call_id", "content", "id", "name", "role", "status", "type"];
        let mut fields: Map<String, Value> = read(self.raw.get()).unwrap_or_default();
        fields.retain(|key, value| !KNOWN.contains(&key.as_str()) && !value.is_null());
        fields
    }
}

/// Deserializes an item; `None` if there is none.
pub(in crate::responses) fn kept<'de, D>(deserializer: D) -> Result<Option<KeptItem<'de>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    raw.map(KeptItem::read).transpose().map_err(D::Error::custom)
}

/// Deserializes a list of items; none if it is no list.
pub(in crate::responses) fn kept_list<'de, D>(deserializer: D) -> Result<Vec<KeptItem<'de>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let items: Vec<&RawValue> = match raw.get().starts_with('[') {
        true => serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
        false => Vec::new(),
    };
    items.into_iter().map(|raw| KeptItem::read(raw).map_err(D::Error::custom)).collect()
}
