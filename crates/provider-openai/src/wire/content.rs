//! The content of a message: a text, or a list of parts as Mistral sends it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Str;
use super::lenient::Object;

/// The content of a message or of a part of one.
#[derive(Debug, Default)]
pub(crate) enum Content<'a> {
    #[default]
    Absent,
    Text(Str<'a>),
    Parts(Vec<Part<'a>>),
}

/// One part of a [`Content`], and its JSON, so that an unknown part can be kept unchanged.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) raw: &'a RawValue,
    pub(crate) fields: ContentPart<'a>,
}

/// The known fields of a [`Part`]; empty if it is no object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow)]
    pub(crate) text: Str<'a>,
    #[serde(borrow)]
    pub(crate) refusal: Str<'a>,
    /// The thoughts of Mistral's models.
    pub(crate) thinking: Thoughts,
}

/// A text, or a list of parts whose texts are joined. It is no [`Content`], which could be nested without
/// limit.
#[derive(Debug, Default)]
pub(crate) struct Thoughts(pub(crate) String);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Thought<'a> {
    #[serde(borrow)]
    text: Str<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(text.to_owned().into()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Content::Text(number.to_string().into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Content::Text(number.to_string().into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Content::Text(number.to_string().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(raw) = items.next_element::<&RawValue>()? {
            let fields: Object<_> = serde_json::from_str(raw.get()).map_err(A::Error::custom)?;
            parts.push(Part { raw, fields: fields.0.unwrap_or_default() });
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(Content::Absent)
    }
}

impl<'de> Deserialize<'de> for Thoughts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ThoughtsVisitor)
    }
}

struct ThoughtsVisitor;

impl<'de> Visitor<'de> for ThoughtsVisitor {
    type Value = Thoughts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Thoughts(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Thoughts::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Thoughts::default())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Thoughts(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Thoughts(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Thoughts(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut texts = String::new();
        while let Some(Object(thought)) = items.next_element::<Object<Thought<'de>>>()? {
            texts.push_str(thought.unwrap_or_default().text.text().unwrap_or_default());
        }
        Ok(Thoughts(texts))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(Thoughts::default())
    }
}
