//! JSON that the parsers of all servers accept and read in the same way.
//!
//! Our own parser accepts more: lone surrogates in skipped values, repeated keys, and nesting that others
//! refuse. Text that a model wrote is sent again with every later request. One call that a server cannot parse
//! would make the conversation unusable.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_json::{Map, Value, json};

use crate::wire::{Lenient, Str, lenient};

/// The deepest nesting of JSON. It is the smallest default limit of common parsers (System.Text.Json 64; Ruby
/// and protobuf 100; serde_json 127; Python and Jackson about 1,000; Go 10,000).
const MOST_NESTED: usize = 64;
/// The key under which arguments are sent that are no such object.
const UNPARSABLE: &str = "unparsable_arguments";

/// Returns the arguments of a call on the wire.
///
/// An object is sent byte for byte as the model wrote it, and empty arguments as `{}`. Of a repeated key only
/// the last value is sent, which is also the value that the tool received. Arguments that some parser refuses
/// are sent as text in an object.
pub(super) fn arguments(written: &str) -> Cow<'_, str> {
    if written.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    let shape = serde_json::from_str::<Shape>(written).ok();
    match shape.filter(|shape| shape.is_object && shape.depth <= MOST_NESTED) {
        None => wrapped(written),
        Some(shape) if !shape.repeats => Cow::Borrowed(written),
        Some(_) => serde_json::from_str::<Value>(written)
            .map_or_else(|_| wrapped(written), |last| Cow::Owned(last.to_string())),
    }
}

/// Returns the fields of a server's own data that can be sent back to it.
pub(super) fn fields_that_go_back(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().filter(|(_, value)| nested(value) < MOST_NESTED).collect()
}

fn wrapped(written: &str) -> Cow<'_, str> {
    Cow::Owned(json!({ UNPARSABLE: written }).to_string())
}

/// Returns the nesting depth of a value. The parser that made the value bounds the recursion.
fn nested(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nested).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(nested).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Properties of some JSON that a parser of values could read.
#[derive(Debug, Default)]
struct Shape {
    is_object: bool,
    depth: usize,
    /// Whether an object in it repeats a key.
    repeats: bool,
}

impl Shape {
    fn add(&mut self, inner: &Self) {
        self.depth = self.depth.max(inner.depth + 1);
        self.repeats |= inner.repeats;
    }
}

impl<'de> Lenient<'de> for Shape {
    type Value = Self;

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut shape = Self { depth: 1, ..Self::default() };
        while let Some(item) = items.next_element()? {
            shape.add(&item);
        }
        Ok(shape)
    }

    fn object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut shape = Self { is_object: true, depth: 1, repeats: false };
        let mut keys = BTreeSet::new();
        while let Some((key, value)) = entries.next_entry::<Str<'de>, _>()? {
            shape.repeats |= !keys.insert(key);
            shape.add(&value);
        }
        Ok(shape)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::<Self, D>(deserializer)
    }
}
