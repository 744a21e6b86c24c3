use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use advisor_core::ToolCall;
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// The calls of a turn so far, by tool and arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct SameCalls(HashMap<Fingerprint, u32>);

/// A hash of a call's tool and arguments, the same for equal JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(u64);

impl SameCalls {
    /// Returns the number of equal calls so far.
    pub(super) fn count(&self, call: Fingerprint) -> u32 {
        self.0.get(&call).copied().unwrap_or_default()
    }

    pub(super) fn note(&mut self, call: Fingerprint) {
        let count = self.0.entry(call).or_default();
        *count = count.saturating_add(1);
    }
}

impl Fingerprint {
    /// Returns the hash of a call. Arguments that are no JSON count as text.
    pub(super) fn from_call(call: &ToolCall) -> Self {
        let mut json = serde_json::Deserializer::from_str(&call.arguments);
        let arguments = HashOfValue.deserialize(&mut json).and_then(|hash| json.end().map(|()| hash));
        Self(hash_of((call.name.as_str(), arguments.unwrap_or_else(|_| hash_of(&call.arguments)))))
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hash_of_whole(number: i64) -> u64 {
    hash_of((2, number))
}

/// Reads a JSON value as its hash, without building the value. The order of names in an object does not count.
struct HashOfValue;

impl<'de> DeserializeSeed<'de> for HashOfValue {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HashOfValue {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<u64, E> {
        Ok(hash_of((1, value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
        Ok(hash_of_whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        match i64::try_from(value) {
            Ok(value) => Ok(hash_of_whole(value)),
            Err(_) => Ok(hash_of((8, value))),
        }
    }

    /// A number has one hash, whether it is written as `10` or as `10.0`.
    fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
        match format!("{value}").parse::<i64>() {
            Ok(whole) => Ok(hash_of_whole(whole)),
            Err(_) => Ok(hash_of((3, value.to_bits()))),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<u64, E> {
        Ok(hash_of((4, value)))
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(hash_of(5))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut hasher = DefaultHasher::new();
        6.hash(&mut hasher);
        while let Some(item) = items.next_element_seed(Self)? {
            item.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let mut sum = 0_u64;
        while let Some(name) = members.next_key_seed(Self)? {
            sum = sum.wrapping_add(hash_of((name, members.next_value_seed(Self)?)));
        }
        Ok(hash_of((7, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_calls_are_counted_whatever_their_form() {
        let mut seen = SameCalls::default();
        let mut note = |tool: &str, arguments: &str| {
            let call = Fingerprint::from_call(&ToolCall::new("c", tool, arguments));
            let before = seen.count(call);
            seen.note(call);
            before
        };
        let calls = [
            ("f", r#"{"a":1,"b":{"c":2,"d":[3,4]}}"#, 0),
            ("f", r#"{ "b": {"d":[3, 4],"c":2}, "a":1 }"#, 1),
            ("f", r#"{"\u0061":1,"b":{"c":2,"d":[3,4]}}"#, 2),
            ("f", r#"{"a":1,"b":{"c":2,"d":[4,3]}}"#, 0),
            ("f", r#"{"a":1,"c":{"b":2,"d":[3,4]}}"#, 0),
            ("g", r#"{"a":1,"b":{"c":2,"d":[3,4]}}"#, 0),
            ("f", r#"{"a":"1"}"#, 0),
            ("f", r#"{"a":1}"#, 0),
            ("f", r#"{"a":1.0}"#, 1),
            ("f", r#"{"a":1.5}"#, 0),
            ("f", r#"{"a":18446744073709551615}"#, 0),
            ("f", r#"{"a":true}"#, 0),
            ("f", r#"{"a":null}"#, 0),
            ("f", r#"{"a":{}}"#, 0),
            ("f", r#"{"a":[]}"#, 0),
            ("f", r#"{"a":1"#, 0),
            ("f", r#"{"a":1"#, 1),
            ("f", r#"{"a":1} and more"#, 0),
        ];
        for (tool, arguments, before) in calls {
            assert_eq!(note(tool, arguments), before, "{tool} {arguments}");
        }
    }
}
