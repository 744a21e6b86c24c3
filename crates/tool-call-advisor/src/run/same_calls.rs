//! `SameCalls` and `Fingerprint`: counts calls with equal arguments and equal results in a row, by hashes of their
//! JSON values.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use advisor_core::{Part, ToolCall, ToolResult};

use crate::plan::schema::Schemas;

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
    /// Returns the hash of a call. Arguments that are no JSON count as text, and so do long ones, which would take long to
    /// parse.
    pub(super) fn from_call(call: &ToolCall) -> Self {
        let parsed = Schemas::is_short(call.arguments.len()).then(|| call.parsed_arguments().ok()).flatten();
        let arguments = parsed.map_or_else(|| hash_of(&call.arguments), hash_of);
        Self(hash_of((call.name.as_str(), arguments)))
    }
}

/// Returns the hash of what the model reads.
fn hash_of_result(result: &ToolResult) -> u64 {
    let part = |part: &Part| match part.as_text() {
        Some(text) => hash_of((0, text)),
        // The part was JSON before.
        None => hash_of((1, serde_json::to_string(part).unwrap_or_default())),
    };
    hash_of((result.is_error, result.parts.iter().map(part).collect::<Vec<_>>()))
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
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
            ("f", r#"{"a":1.0}"#, 0),
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
    fn long_arguments_count_as_text() {
        let call = |space: &str| {
            let arguments = format!("{{\"a\":{space}\"{}\"}}", "x".repeat(64 << 10));
            Fingerprint::from_call(&ToolCall::new("c", "f", arguments))
        };
        assert!(call("") == call("") && call("") != call(" "));
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
