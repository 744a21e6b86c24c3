//! The content of a message: a text, or a list of parts as Mistral sends it.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess};
use serde_json::value::RawValue;

use super::Str;
use provider_http::json::lenient::{Lenient, Object, Scalar, lenient};

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

impl ContentPart<'_> {
    /// Checks whether the part is anything but reasoning or an empty text.
    pub(crate) fn speaks(&self) -> bool {
        let is_text =
            matches!(self.kind.text(), None | Some("text" | "output_text" | "thinking" | "refusal"));
        !is_text || self.text.text().or(self.refusal.text()).is_some()
    }

    /// Checks whether the part has reasoning.
    pub(crate) fn reasons(&self) -> bool {
        !self.thinking.0.is_empty()
    }
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

provider_http::deserialize_leniently!(Content);

impl<'de> Lenient<'de> for Content<'de> {
    type Value = Self;

    #[inline(always)]
    fn scalar(scalar: Scalar<'de>) -> Self {
        match scalar {
            Scalar::Null | Scalar::Bool(_) => Self::Absent,
            scalar => Self::Text(scalar.spelling().into()),
        }
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut parts = Vec::new();
        while let Some(raw) = items.next_element::<&RawValue>()? {
            let fields: Object<_> = serde_json::from_str(raw.get()).map_err(A::Error::custom)?;
            parts.push(Part { raw, fields: fields.0.unwrap_or_default() });
        }
        Ok(Self::Parts(parts))
    }
}

impl<'de> Lenient<'de> for Thoughts {
    type Value = Self;

    #[inline(always)]
    fn scalar(scalar: Scalar<'de>) -> Self {
        match scalar {
            Scalar::Bool(_) => Self::default(),
            scalar => Self(scalar.spelling().into_owned()),
        }
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut texts = String::new();
        while let Some(Object(thought)) = items.next_element::<Object<Thought<'de>>>()? {
            texts.push_str(thought.unwrap_or_default().text.text().unwrap_or_default());
        }
        Ok(Self(texts))
    }
}

impl<'de> Deserialize<'de> for Thoughts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::<Self, D>(deserializer)
    }
}
