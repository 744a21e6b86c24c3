//! JSON that the parsers of all servers accept and read in the same way.
//!
//! Our own parser accepts more: lone surrogates in skipped values, repeated keys, and nesting that others
//! refuse. Text that a model wrote is sent again with every later request. One call that a server cannot parse
//! would make the conversation unusable.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

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
    match serde_json::from_str::<Seen>(written) {
        Ok(seen) if seen.is_object && seen.nested <= MOST_NESTED && !seen.repeats => Cow::Borrowed(written),
        Ok(seen) if seen.is_object && seen.nested <= MOST_NESTED => serde_json::from_str::<Value>(written)
            .map_or_else(|_| wrapped(written), |last| Cow::Owned(last.to_string())),
        _ => wrapped(written),
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
struct Seen {
    is_object: bool,
    nested: usize,
    repeats: bool,
}

impl Seen {
    fn add(&mut self, inner: &Self) {
        self.nested = self.nested.max(inner.nested + 1);
        self.repeats |= inner.repeats;
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

/// A key, borrowed where it holds no escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct SeenVisitor;

impl<'de> Visitor<'de> for SeenVisitor {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seen, A::Error> {
        let mut seen = Seen { nested: 1, ..Seen::default() };
        while let Some(item) = items.next_element()? {
            seen.add(&item);
        }
        Ok(seen)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Seen, A::Error> {
        let mut seen = Seen { is_object: true, nested: 1, repeats: false };
        let mut keys = BTreeSet::new();
        while let Some((key, value)) = entries.next_entry::<Key<'_>, _>()? {
            seen.repeats |= !keys.insert(key);
            seen.add(&value);
        }
        Ok(seen)
    }
}
