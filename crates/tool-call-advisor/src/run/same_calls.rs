//! `SameCalls` and `Fingerprint`: counts calls with equal arguments and equal results in a row, by hashes of their
//! JSON values.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use advisor_core::{ToolCall, ToolResult};
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// The calls of a turn so far, by tool and arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct SameCalls(HashMap<Fingerprint, Repeats>);

/// Equal calls.
#[derive(Debug, Clone, Copy, Default)]
struct Repeats {
    /// The number of the last ones in a row that had equal results.
    count: u32,
    /// The hash of the last result, if it is known.
    result: Option<u64>,
    /// Whether the model was told that they are too many.
    told: bool,
}

/// A hash of a call's tool and arguments, the same for equal JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(u64);

impl SameCalls {
    /// Returns the number of equal calls with equal results in a row.
    pub(super) fn count(&self, call: Fingerprint) -> u32 {
        self.0.get(&call).map_or(0, |repeats| repeats.count)
    }

    /// Notes a call. A result that is not known counts as equal to the one before.
    pub(super) fn note(&mut self, call: Fingerprint, result: Option<&ToolResult>) {
        let repeats = self.0.entry(call).or_default();
        let result = result.map(hash_of_result).or(repeats.result);
        let is_equal = repeats.result.is_none() || repeats.result == result;
        repeats.count = if is_equal { repeats.count.saturating_add(1) } else { 1 };
        repeats.result = result;
    }

    /// Notes that the model is told that the equal calls are too many.
    pub(super) fn tell(&mut self, call: Fingerprint) {
        self.0.entry(call).or_default().told = true;
    }

    pub(super) fn was_told(&self, call: Fingerprint) -> bool {
        self.0.get(&call).is_some_and(|repeats| repeats.told)
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

/// Returns the hash of what the model reads.
fn hash_of_result(result: &ToolResult) -> u64 {
    let mut hasher = Written(DefaultHasher::new());
    result.is_error.hash(&mut hasher.0);
    for part in &result.parts {
        let text = part.as_text();
        text.hash(&mut hasher.0);
        if text.is_none() {
            // Writing to a hash cannot fail, and the part was JSON before.
            let _ = serde_json::to_writer(&mut hasher, part);
        }
    }
    hasher.0.finish()
}

/// Hashes what is written.
struct Written(DefaultHasher);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    use advisor_core::Part;
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_calls_are_counted_whatever_their_form() {
        let mut seen = SameCalls::default();
        let mut note = |tool: &str, arguments: &str| {
            let call = Fingerprint::from_call(&ToolCall::new("c", tool, arguments));
            let before = seen.count(call);
            seen.note(call, None);
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

    #[test]
    fn another_result_begins_the_count_anew() {
        let (mut seen, call) = (SameCalls::default(), ToolCall::new("c", "status", "{}"));
        let status = Fingerprint::from_call(&call);
        let mut counts = |results: &[&str]| {
            let count = |result: &&str| {
                let result = ToolResult::new(&call, vec![(*result).into()]);
                seen.note(status, Some(&result));
                seen.count(status)
            };
            results.iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(counts(&["1 %", "2 %", "2 %", "2 %", "1 %", "1 %"]), [1, 1, 2, 3, 1, 2]);
        seen.note(status, Some(&ToolResult::error(&call, "1 %")));
        assert_eq!(seen.count(status), 1, "an error is another result");
        for parts in [
            vec![Part::Json(json!(1))],
            vec![Part::Json(json!(2))],
            vec!["1".into(), "2".into()],
            vec!["12".into()],
        ] {
            seen.note(status, Some(&ToolResult::new(&call, parts)));
            assert_eq!(seen.count(status), 1);
        }
        seen.note(status, Some(&ToolResult::new(&call, vec!["12".into()])));
        assert_eq!(seen.count(status), 2);
    }
}
