//! Regular expressions in schemas, which may be those of a server: only an engine of linear time checks them.

use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::{Value, json};

/// The bytes that a compiled expression may have.
const MOST_BYTES: usize = 256 << 10;

/// Keywords that have data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Keywords under which a schema that checks less refuses more.
const TURNING: [&str; 4] = ["not", "if", "oneOf", "maxContains"];

/// Compiles a schema. Expressions that need another engine, such as those with look-ahead, are left out: the tool itself
/// has to check them.
///
/// # Errors
/// If the schema is invalid, has a too large expression, or without an expression would refuse what it allows.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    let built = options().build(schema).map_err(|error| error.to_string());
    if built.is_ok() || has_turning(schema) {
        return built;
    }
    let mut known = schema.clone();
    if leave_out(&mut known) { options().build(&known).map_err(|error| error.to_string()) } else { built }
}

/// Returns the number of expressions in a schema.
pub(crate) fn count(schema: &Value) -> usize {
    let of_members = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        (name, _) if DATA.contains(&name) => 0,
        ("pattern", Value::String(_)) => 1,
        ("patternProperties", Value::Object(members)) => members.len().saturating_add(count(value)),
        _ => count(value),
    };
    match schema {
        Value::Object(members) => members.iter().map(of_members).fold(0, usize::saturating_add),
        Value::Array(items) => items.iter().map(count).fold(0, usize::saturating_add),
        _ => 0,
    }
}

fn options() -> ValidationOptions<'static> {
    let linear = PatternOptions::regex().size_limit(MOST_BYTES).dfa_size_limit(MOST_BYTES);
    jsonschema::options().with_pattern_options(linear)
}

/// Checks whether an expression is valid, but only for another engine. That one compiles it, and never runs it.
fn needs_other_engine(expression: &str) -> bool {
    let schema = json!({ "pattern": expression });
    let other = PatternOptions::fancy_regex().size_limit(MOST_BYTES).dfa_size_limit(MOST_BYTES);
    options().build(&schema).is_err()
        && jsonschema::options().with_pattern_options(other).build(&schema).is_ok()
}

fn has_turning(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| TURNING.contains(&name.as_str()) || has_turning(value))
        }
        Value::Array(items) => items.iter().any(has_turning),
        _ => false,
    }
}

/// Removes the expressions that the engine does not know. Returns whether there were any.
fn leave_out(schema: &mut Value) -> bool {
    let mut found = false;
    match schema {
        Value::Object(members) => {
            if members.get("pattern").and_then(Value::as_str).is_some_and(needs_other_engine) {
                members.remove("pattern");
                found = true;
            }
            let names = members.get("patternProperties").and_then(Value::as_object);
            if names.is_some_and(|names| names.keys().any(|name| needs_other_engine(name))) {
                // The last two would refuse what the first one allows.
                for keyword in ["patternProperties", "additionalProperties", "unevaluatedProperties"] {
                    members.remove(keyword);
                }
                found = true;
            }
            for (_, value) in members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str())) {
                found |= leave_out(value);
            }
        }
        Value::Array(items) => {
            for item in items {
                found |= leave_out(item);
            }
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(schema: &Value, value: &Value) -> Option<bool> {
        compile(schema).ok().map(|compiled| compiled.is_valid(value))
    }

    #[test]
    fn patterns_of_the_linear_engine_are_checked() {
        let schema = json!({"properties": {"day": {"pattern": "^\\d{4}-\\d{2}$"}}, "patternProperties": {"^x-": {"type": "string"}}});
        assert_eq!(count(&schema), 2);
        assert_eq!(accepts(&schema, &json!({"day": "2026-01"})), Some(true));
        assert_eq!(accepts(&schema, &json!({"day": "today"})), Some(false));
        assert_eq!(accepts(&schema, &json!({"x-a": 1})), Some(false));
    }

    #[test]
    fn law_r1_other_patterns_are_left_to_the_tool() {
        let of = |pattern: &str| json!({"properties": {"a": {"type": "string", "pattern": pattern}}});
        for pattern in ["^(?!\\.)(?!.*\\.\\.)\\S+@\\S+$", "^(a+)+\\1$"] {
            assert_eq!(accepts(&of(pattern), &json!({"a": "a".repeat(40) + "!"})), Some(true), "{pattern}");
            assert_eq!(accepts(&of(pattern), &json!({"a": 1})), Some(false), "the rest is checked");
        }
        let names =
            json!({"patternProperties": {"^(?!_)": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(accepts(&names, &json!({"a": "b"})), Some(true));
        let turned = json!({"not": {"pattern": "(?=a)"}});
        assert_eq!(accepts(&turned, &json!("b")), None, "it would refuse everything");
        assert_eq!(
            accepts(&json!({"properties": {"a": {"pattern": "(a"}}, "type": "nothing"}), &json!(1)),
            None
        );
        for invalid in ["(?<!a", "(a", "\\p{L}{1000}"] {
            assert_eq!(accepts(&of(invalid), &json!({"a": 1})), None, "{invalid}");
        }
        let data = json!({"const": {"pattern": "(?=a)", "patternProperties": {"b": 1}}});
        assert_eq!((count(&data), accepts(&data, &data["const"])), (0, Some(true)));
    }
}
