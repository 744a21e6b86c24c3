//! A fragment of a tool call, with the other fields that the server sends.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Str;
use super::call_index::CallIndex;
use provider_http::json::lenient::{Lenient, Object, Scalar};

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
    /// The same as [`ToolCall::extras`].
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

provider_http::deserialize_leniently!(ToolCall, Function, Arguments);

impl<'de> Lenient<'de> for ToolCall<'de> {
    type Value = Self;

    fn object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut call = Self::default();
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

impl<'de> Lenient<'de> for Function<'de> {
    type Value = Self;

    fn object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut function = Self::default();
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

impl<'de> Lenient<'de> for Arguments<'de> {
    type Value = Self;

    #[inline(always)]
    fn scalar(scalar: Scalar<'de>) -> Self {
        Self(scalar.spelling())
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut text = String::from("[");
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(item.get());
        }
        text.push(']');
        Ok(Self(Cow::Owned(text)))
    }

    fn object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
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
        Ok(Self(Cow::Owned(text)))
    }
}
