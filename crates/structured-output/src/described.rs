use serde_json::{Map, Value};

/// Returns the schema as a model needs it in words: without names of types and formats of numbers.
///
/// The depth of the recursion is that of the value, which its parser bounds.
pub(crate) fn described_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let described = members.iter().filter(|(keyword, _)| is_described(keyword, members));
            described.map(|(keyword, value)| (keyword.clone(), described_value(keyword, value))).collect()
        }
        Value::Array(schemas) => schemas.iter().map(described_schema).collect(),
        other => other.clone(),
    }
}

/// Checks whether a keyword of a schema informs a model.
fn is_described(keyword: &str, schema: &Map<String, Value>) -> bool {
    match keyword {
        "$schema" | "title" => false,
        // schemars has the width of integers here, such as `uint32`.
        "format" => schema.get("type").is_none_or(allows_text),
        _ => true,
    }
}

fn allows_text(kind: &Value) -> bool {
    let is_text = |kind: &Value| kind == "string";
    is_text(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_text))
}

fn described_value(keyword: &str, value: &Value) -> Value {
    match (keyword, value) {
        // Its keys are names, so one of them may be `title`.
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Value::Object(schemas),
        ) => schemas.iter().map(|(name, schema)| (name.clone(), described_schema(schema))).collect(),
        (
            "additionalProperties"
            | "items"
            | "prefixItems"
            | "contains"
            | "propertyNames"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "not"
            | "if"
            | "then"
            | "else",
            schema,
        ) => described_schema(schema),
        // A value, such as that of `const`, is no schema.
        (_, value) => value.clone(),
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
