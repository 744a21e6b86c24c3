//! A fragment of a tool call, with the other fields that the server sends.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Str;
use super::call_index::CallIndex;
use super::lenient::Object;

/// A fragment of a tool call.
#[derive(Debug, Default)]
pub(crate) struct ToolCall<'a> {
    pub(crate) index: CallIndex<'a>,
    pub(crate) id: Str<'a>,
    pub(crate) function: Function<'a>,
    /// Fields that this crate does not know, such as `extra_content` with Google's thought signatures. They are
    /// sent back with the call.
    pub(crate) extras: Map<String, Value>,
}

/// The function of a call.
#[derive(Debug, Default)]
pub(crate) struct Function<'a> {
    pub(crate) name: Str<'a>,
    pub(crate) arguments: Arguments<'a>,
    /// As [`ToolCall::extras`].
    pub(crate) extras: Map<String, Value>,
}

/// Arguments: a text, or JSON in place of one (Q20), whose spelling is kept.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a>(Cow<'a, str>);

impl Arguments<'_> {
    /// Returns the next characters of the arguments, unless there are none.
    pub(crate) fn text(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ToolCall<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ToolCallVisitor)
    }
}

struct ToolCallVisitor;

impl<'de> Visitor<'de> for ToolCallVisitor {
    type Value = ToolCall<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tool call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut call = ToolCall::default();
        while let Some(key) = entries.next_key::<Str<'de>>()? {
            match key.text().unwrap_or_default() {
                "index" => call.index = entries.next_value()?,
                "id" => call.id = entries.next_value()?,
                "type" => drop(entries.next_value::<IgnoredAny>()?),
                "function" => {
                    call.function = entries.next_value::<Object<Function<'de>>>()?.0.unwrap_or_default()
                }
                other => keep(&mut call.extras, other, entries.next_value()?),
            }
        }
        Ok(call)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Function<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FunctionVisitor)
    }
}

struct FunctionVisitor;

impl<'de> Visitor<'de> for FunctionVisitor {
    type Value = Function<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function's name and arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut function = Function::default();
        while let Some(key) = entries.next_key::<Str<'de>>()? {
            match key.text().unwrap_or_default() {
                "name" => function.name = entries.next_value()?,
                "arguments" => function.arguments = entries.next_value()?,
                other => keep(&mut function.extras, other, entries.next_value()?),
            }
        }
        Ok(function)
    }
}

fn keep(extras: &mut Map<String, Value>, key: &str, value: Value) {
    if !value.is_null() {
        extras.insert(key.to_owned(), value);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor).map(Self)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments as text or as an object")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut text = String::from("[");
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(item.get());
        }
        text.push(']');
        Ok(Cow::Owned(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut text = String::from("{");
        while let Some(key) = entries.next_key::<&'de RawValue>()? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(key.get());
            text.push(':');
            text.push_str(entries.next_value::<&'de RawValue>()?.get());
        }
        text.push('}');
        Ok(Cow::Owned(text))
    }
}
