//! `Part`, `Media` and `MediaSource`: content of user messages and tool results; media bytes as base64.

use std::fmt;

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Text;

/// One part of a user message or a tool result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A video.
    Video(Media),
    /// Any other file.
    File(Media),
    /// A structured value.
    Json(Value),
}

impl Part {
    /// Returns the text of a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_json(&self) -> Option<&Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Text(_) | Self::Image(_) | Self::Audio(_) | Self::Video(_) | Self::File(_) => None,
        }
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Text> for Part {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Part {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

/// Media: its type and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// The media type, such as `image/png`; `image/*` if only the kind is known.
    pub mime: Text,
    /// The location of the bytes.
    pub source: MediaSource,
    /// A file name for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
}

impl Media {
    /// Creates media that the provider fetches from `url`; this project never fetches it.
    pub fn from_url(mime: impl Into<Text>, url: impl Into<Text>) -> Self {
        Self { mime: mime.into(), source: MediaSource::Url(url.into()), name: None }
    }

    /// Creates media whose bytes are sent with the request.
    pub fn from_bytes(mime: impl Into<Text>, bytes: impl Into<Bytes>) -> Self {
        Self { mime: mime.into(), source: MediaSource::Bytes(bytes.into()), name: None }
    }

    /// Sets the file name.
    #[must_use]
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// Location of the bytes of [`Media`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// An address that the provider fetches.
    Url(Text),
    /// The bytes themselves. Serialised as base64.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    Bytes(Bytes),
    /// An id in the provider's file store.
    ProviderFile(Text),
}

impl fmt::Debug for MediaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::ProviderFile(id) => f.debug_tuple("ProviderFile").field(id).finish(),
        }
    }
}

fn to_base64<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
}
