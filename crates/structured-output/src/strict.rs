use serde_json::{Map, Value};

/// Returns the schema in the form that servers can enforce strictly, if it has one.
///
/// Strict servers want every property required and no others allowed. A property that may be left out is one that may be
/// null instead, which deserialises to the same where it is an `Option`. Schemas with free keys or exclusive choices have
/// no such form.
pub(crate) fn strict_schema(schema: &Value) -> Option<Value> {
    match schema {
        Value::Object(object) => strict_object(object).map(Value::Object),
        Value::Array(items) => items.iter().map(strict_schema).collect::<Option<_>>().map(Value::Array),
        other => Some(other.clone()),
    }
}

fn strict_object(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    const UNSUPPORTED: [&str; 8] = [
        "oneOf",
        "allOf",
        "not",
        "if",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "prefixItems",
    ];
    let free = |value: &Value| *value != Value::Bool(false);
    if UNSUPPORTED.iter().any(|keyword| object.contains_key(*keyword))
        || object.get("additionalProperties").is_some_and(free)
    {
        return None;
    }
    let properties = object.get("properties").and_then(Value::as_object);
    if object.get("type").is_some_and(|kind| kind == "object") && properties.is_none() {
        return None;
    }
    let mut strict = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                let schemas =
                    schemas.iter().map(|(name, schema)| Some((name.clone(), strict_schema(schema)?)));
                Value::Object(schemas.collect::<Option<_>>()?)
            }
            ("default" | "examples" | "$schema" | "format", _) => continue,
            ("items" | "anyOf", schema) => strict_schema(schema)?,
            (_, value) => value.clone(),
        };
        strict.insert(keyword.clone(), value);
    }
    if let Some(properties) = properties {
        let is_optional = |name: &String| {
            let required = object.get("required").and_then(Value::as_array);
            required.is_none_or(|required| !required.iter().any(|known| known == name))
        };
        // One that may be left out but not be null has no strict form.
        if properties.iter().any(|(name, schema)| is_optional(name) && !allows_null(schema)) {
            return None;
        }
        strict.insert("required".into(), properties.keys().cloned().map(Value::from).collect());
        strict.insert("additionalProperties".into(), false.into());
    }
    Some(strict)
}

fn allows_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let kind = schema.get("type");
    kind.is_some_and(|kind| is_null(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_null)))
        || schema.get("anyOf").and_then(Value::as_array).is_some_and(|any| any.iter().any(allows_null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_property_is_required_and_no_other_allowed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whole"},
                "nick": {"type": ["string", "null"], "default": null},
                "friends": {"type": "array", "items": {"$ref": "#/$defs/Friend"}},
            },
            "required": ["name", "friends"],
            "$defs": {"Friend": {"type": "object", "properties": {"age": {"type": "integer", "format": "uint8"}}, "required": ["age"]}},
        });
        let strict = strict_schema(&schema).unwrap();
        assert_eq!(
            strict,
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Whole"},
                    "nick": {"type": ["string", "null"]},
                    "friends": {"type": "array", "items": {"$ref": "#/$defs/Friend"}},
                },
                "required": ["friends", "name", "nick"],
                "additionalProperties": false,
                "$defs": {"Friend": {
                    "type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
                    "additionalProperties": false,
                }},
            })
        );
    }

    #[test]
    fn what_has_no_strict_form_has_none() {
        for schema in [
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "object"}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            json!({"type": "array", "items": {"oneOf": []}}),
        ] {
            assert_eq!(strict_schema(&schema), None, "{schema}");
        }
    }
}
