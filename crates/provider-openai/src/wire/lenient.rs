//! Values that servers write in more than one form.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// A text. A number or a boolean counts as its spelling, everything else and the empty text as absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Str<'a>(Cow<'a, str>);

impl Str<'_> {
    /// Returns the text, unless it is empty.
    pub(crate) fn text(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Str<'a> {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrVisitor).map(Self)
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(items)?;
        Ok(Cow::Borrowed(""))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(Cow::Borrowed(""))
    }
}

/// A whole number, also one written as a decimal or as text. Everything else counts as absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Option<i64>);

impl Number {
    /// Returns the number as a count; `None` if it is negative or too large for some readers of JSON. So the
    /// counts of many rounds add up without overflow.
    pub(crate) fn count(self) -> Option<u64> {
        self.0.and_then(|number| u64::try_from(number).ok()).filter(|count| *count <= LARGEST_COUNT)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Self)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).ok())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        // Exact: beyond 2^53 a decimal identifies no single integer.
        let whole = value.fract() == 0.0 && value.abs() <= LARGEST_COUNT as f64;
        Ok(whole.then_some(value as i64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.parse().ok())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(items)?;
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(None)
    }
}

/// A list that nearly always has one entry, which needs no allocation.
#[derive(Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let mut items = items.into_iter();
        if self.first.is_none() {
            self.first = items.next();
        }
        self.rest.extend(items);
    }
}

/// Deserializes a list and keeps its entries that are objects; `None` if it is no list.
pub(crate) fn list<'de, D, L>(deserializer: D) -> Result<Option<L>, D::Error>
where
    D: Deserializer<'de>,
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// Deserializes an object; `None` if it is something else.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// An object; `None` if it is something else.
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

/// Deserializes scalars to `None`.
macro_rules! scalars_are_none {
    () => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    };
}

struct ListVisitor<L>(PhantomData<L>);

impl<'de, L> Visitor<'de> for ListVisitor<L>
where
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    type Value = Option<L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    scalars_are_none!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = L::default();
        while let Some(Object(item)) = items.next_element()? {
            list.extend(item);
        }
        Ok(Some(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(None)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    scalars_are_none!();

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(items)?;
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries)).map(Some)
    }
}

/// Checks whether this JSON carries no information: `null`, `false`, `0`, `""`, `[]` or `{}`.
pub(crate) fn is_nothing(json: &RawValue) -> bool {
    let mut bytes = json.get().bytes().filter(|byte| !byte.is_ascii_whitespace());
    match json.get() {
        "null" | "false" | "0" | "\"\"" => true,
        text if text.starts_with(['[', '{']) => bytes.nth(1).is_some_and(|byte| matches!(byte, b']' | b'}')),
        _ => false,
    }
}
