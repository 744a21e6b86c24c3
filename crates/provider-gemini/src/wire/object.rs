//! Lenient access to JSON whose fields may have any form.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object, in order, each as it is spelled.
#[derive(Debug, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Reads an object; `None` if the JSON is something else.
    pub(crate) fn read(json: &'a RawValue) -> Option<Self> {
        serde_json::from_str(json.get()).ok()
    }

    /// Returns the value of a field; `None` if it is absent or `null`. Of equal names the last one counts.
    pub(crate) fn field(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rfind(|(key, _)| key == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// Returns the names of the fields, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Returns the object in a field.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::read(self.field(name)?)
    }

    /// Returns the entries of the list in a field; none if the field is something else.
    pub(crate) fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.field(name).map(list).unwrap_or_default()
    }

    /// Returns the text in a field; `None` if it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.field(name).and_then(text).filter(|text| !text.is_empty())
    }

    /// Checks whether a field is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.field(name).is_some_and(|value| value.get() == "true")
    }
}

/// Returns the entries of a list; none if the JSON is something else.
pub(crate) fn list(json: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// Returns a text, or the spelling of a number or a boolean; `None` for anything else.
///
/// U+FFFD replaces a lone surrogate, since no character is better than one that the server did not send.
pub(crate) fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    match json.get().as_bytes().first()? {
        b'"' => serde_json::from_str::<Lossy<'_>>(json.get()).ok().map(|text| text.0),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(json.get())),
    }
}

/// A string, with U+FFFD in place of lone surrogates.
struct Lossy<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Lossy<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

struct LossyVisitor;

impl<'de> Visitor<'de> for LossyVisitor {
    type Value = Lossy<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Lossy<'de>, E> {
        Ok(Lossy(String::from_utf8_lossy(bytes)))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Lossy<'de>, E> {
        Ok(Lossy(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Lossy(name), value)) = entries.next_entry()? {
            fields.push((name, value));
        }
        Ok(Object(fields))
    }
}
