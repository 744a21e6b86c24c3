//! `described_schema`: a JSON schema as prompts describe it.

use serde_json::{Map, Value};

/// The members of a schema that are schemas, or lists of them.
const SCHEMAS: [&str; 13] = [
    "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf",
    "prefixItems", "propertyNames", "then", "unevaluatedProperties",
];

/// The members of a schema that are objects of schemas, each under a name.
const NAMED_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Returns a JSON schema as a prompt describes it: without each `$schema`, title and format of a number.
///
/// A `format` stays where a text is possible: `date-time` tells how to write it. The format of a number is a type of a
/// program, such as `uint32`. The depth of the recursion is that of the value, which its parser bounds.
#[must_use]
pub fn described_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let described = members.iter().filter(|(name, _)| is_described(name, members));
            described.map(|(name, value)| (name.clone(), member(name, value))).collect()
        }
        Value::Array(schemas) => schemas.iter().map(described_schema).collect(),
        other => other.clone(),
    }
}

/// Checks whether a member of a schema informs a model.
fn is_described(name: &str, schema: &Map<String, Value>) -> bool {
    match name {
        "$schema" | "title" => false,
        "format" => !is_number(schema.get("type")),
        _ => true,
    }
}

fn is_number(kind: Option<&Value>) -> bool {
    let is_one = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number"));
    match kind {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(is_one) && !kinds.iter().any(|kind| kind.as_str() == Some("string"))
        }
        Some(kind) => is_one(kind),
        None => false,
    }
}

fn member(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(schemas) if NAMED_SCHEMAS.contains(&name) => {
            schemas.iter().map(|(name, schema)| (name.clone(), described_schema(schema))).collect()
        }
        value if SCHEMAS.contains(&name) => described_schema(value),
        // A value, such as that of `const`, is no schema.
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_values_are_kept() {
        let schema = json!({
            "title": "Form",
            "properties": {
                "title": {"const": {"title": "a", "format": "b"}},
                "date": {"type": ["string", "null"], "format": "date", "description": "When."},
                "list": {"type": "array", "items": {"anyOf": [{"type": "number", "format": "double"}, {"$ref": "#"}]}},
            },
        });
        let expected = json!({
            "properties": {
                "title": {"const": {"title": "a", "format": "b"}},
                "date": {"type": ["string", "null"], "format": "date", "description": "When."},
                "list": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"$ref": "#"}]}},
            },
        });
        assert_eq!(described_schema(&schema), expected);
    }
}
