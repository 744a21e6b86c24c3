//! Values that servers write in more than one form.
//!
//! A typed struct that rejects a field of another form ends the answer as malformed JSON. With these types, a value
//! of an unexpected form counts as absent.
//!
//! ```
//! use provider_http::json::lenient::{Number, Str, object};
//! use serde::Deserialize;
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Event<'a> {
//!     #[serde(borrow)]
//!     id: Str<'a>,
//!     #[serde(deserialize_with = "object")]
//!     usage: Option<Usage>,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Usage {
//!     total: Number,
//! }
//!
//! let event: Event<'_> = serde_json::from_str(r#"{"id":7,"usage":{"total":"12"}}"#)?;
//! assert_eq!((event.id.text(), event.usage.and_then(|usage| usage.total.count())), (Some("7"), Some(12)));
//! let event: Event<'_> = serde_json::from_str(r#"{"id":[],"usage":"none"}"#)?;
//! assert!(event.id.text().is_none() && event.usage.is_none());
//! # Ok::<(), serde_json::Error>(())
//! ```

mod list;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use list::{Few, list};

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// Reads any JSON as one type. JSON of a form that an implementation does not read counts as absent, which is the
/// default of the type.
pub trait Lenient<'de> {
    /// The type that is read.
    type Value: Default;

    /// Reads JSON that is neither a list nor an object.
    #[inline(always)]
    fn scalar(_: Scalar<'de>) -> Self::Value {
        Self::Value::default()
    }

    /// Reads a list.
    ///
    /// # Errors
    /// If it is malformed.
    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(items)?;
        Ok(Self::Value::default())
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If it is malformed.
    fn object<A: MapAccess<'de>>(entries: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(entries)?;
        Ok(Self::Value::default())
    }
}

/// JSON that is neither a list nor an object.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "JSON has no other scalars")]
pub enum Scalar<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A negative integer.
    Signed(i64),
    /// Another integer.
    Unsigned(u64),
    /// Another number.
    Float(f64),
    /// A text, without its escapes.
    Text(Cow<'a, str>),
}

impl<'a> Scalar<'a> {
    /// Returns the text, or the spelling of another scalar; that of `null` is empty.
    #[must_use]
    #[inline(always)]
    pub fn spelling(self) -> Cow<'a, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::Bool(value) => Cow::Owned(value.to_string()),
            Self::Signed(value) => Cow::Owned(value.to_string()),
            Self::Unsigned(value) => Cow::Owned(value.to_string()),
            Self::Float(value) => Cow::Owned(value.to_string()),
            Self::Text(text) => text,
        }
    }
}

/// Deserializes any JSON by the rules of `T`.
///
/// # Errors
/// If it is malformed.
pub fn lenient<'de, T: Lenient<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T::Value, D::Error> {
    deserializer.deserialize_any(LenientVisitor::<T>(PhantomData))
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Signed(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Unsigned(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Float(value)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(T::scalar(Scalar::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        T::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        T::object(entries)
    }
}

/// Implements `Deserialize` by the rules of [`Lenient`](crate::json::lenient::Lenient), for types that borrow from
/// the JSON.
#[macro_export]
macro_rules! deserialize_leniently {
    ($($type:ident),+) => {$(
        impl<'de: 'a, 'a> ::serde::Deserialize<'de> for $type<'a> {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                $crate::json::lenient::lenient::<$type<'de>, D>(deserializer)
            }
        }
    )+};
}

/// A text. A number or a boolean counts as its spelling, everything else and the empty text as absent.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Str<'a>(Cow<'a, str>);

impl Str<'_> {
    /// Returns the text, unless it is empty.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Str<'a> {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl<'de> Lenient<'de> for Str<'de> {
    type Value = Self;

    #[inline(always)]
    fn scalar(scalar: Scalar<'de>) -> Self {
        Self(scalar.spelling())
    }
}

deserialize_leniently!(Str);

/// A whole number, also one written as a decimal or as text. Everything else counts as absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Number(pub Option<i64>);

impl Number {
    /// Returns the number as a count; `None` if it is negative or too large for some readers of JSON. So the
    /// counts of many rounds add up without overflow.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        self.0.and_then(|number| u64::try_from(number).ok()).filter(|count| *count <= LARGEST_COUNT)
    }
}

impl<'de> Lenient<'de> for Number {
    type Value = Self;

    #[inline(always)]
    fn scalar(scalar: Scalar<'de>) -> Self {
        Self(match scalar {
            Scalar::Signed(value) => Some(value),
            Scalar::Unsigned(value) => i64::try_from(value).ok(),
            // Exact: beyond 2^53 a decimal identifies no single integer.
            Scalar::Float(value) => {
                (value.fract() == 0.0 && value.abs() <= LARGEST_COUNT as f64).then_some(value as i64)
            }
            Scalar::Text(text) => text.parse().ok(),
            Scalar::Null | Scalar::Bool(_) => None,
        })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::<Self, D>(deserializer)
    }
}

/// Deserializes an object; `None` if it is something else.
///
/// # Errors
/// If it is malformed, or not of this type.
pub fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    lenient::<Object<T>, D>(deserializer)
}

/// An object; `None` if it is something else.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Object<T> {
    type Value = Option<T>;

    fn object<A: MapAccess<'de>>(entries: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries)).map(Some)
    }
}

/// Checks whether this JSON carries no information: `null`, `false`, `0`, `""`, `[]` or `{}`.
#[must_use]
pub fn is_nothing(json: &RawValue) -> bool {
    let mut bytes = json.get().bytes().filter(|byte| !byte.is_ascii_whitespace());
    match json.get() {
        "null" | "false" | "0" | "\"\"" => true,
        text if text.starts_with(['[', '{']) => bytes.nth(1).is_some_and(|byte| matches!(byte, b']' | b'}')),
        _ => false,
    }
}
