use serde_json::{Map, Value, json};

/// The members of a schema that are schemas, or lists of them.
const SCHEMAS: [&str; 13] = [
    "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf",
    "prefixItems", "propertyNames", "then", "unevaluatedProperties",
];

/// The members of a schema that are objects of schemas, each under a name.
const NAMED_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Returns the schema of arguments as a model sees it.
///
/// The depth of the recursion is that of the value, which its parser bounds.
pub(super) fn shown(schema: &Value) -> Value {
    match schema {
        Value::Null => json!({"type": "object"}),
        schema => schema_of(schema),
    }
}

fn schema_of(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let told = members.iter().filter(|(name, _)| tells(name, members));
            told.map(|(name, value)| (name.clone(), member(name, value))).collect()
        }
        Value::Array(schemas) => schemas.iter().map(schema_of).collect(),
        other => other.clone(),
    }
}

/// Checks whether a member of a schema tells a model anything.
fn tells(name: &str, schema: &Map<String, Value>) -> bool {
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
            schemas.iter().map(|(name, schema)| (name.clone(), schema_of(schema))).collect()
        }
        value if SCHEMAS.contains(&name) => schema_of(value),
        value => value.clone(),
    }
}
