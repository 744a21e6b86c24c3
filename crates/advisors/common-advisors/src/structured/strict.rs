//! `strict_schema`: the schema in the strict form that servers can enforce, if there is one.

use serde_json::{Map, Value, json};

/// Returns the schema in the form that servers can enforce strictly, if it has one.
///
/// Strict servers require every property and allow no others. An optional property therefore becomes required. It
/// must allow null, which deserialises to the same if it is an `Option`. Schemas with free keys, exclusive choices
/// or values of any type have no strict form. Some keywords that only narrow a value are left out; only the check
/// of the form can enforce them.
pub(crate) fn strict_schema(schema: &Value) -> Option<Value> {
    match schema {
        Value::Object(object) => strict_object(object).map(Value::Object),
        // `true` allows any value.
        _ => None,
    }
}

/// The treatment of a keyword.
enum Fate {
    Kept,
    LeftOut,
    /// It has no strict form, or is unknown.
    Refused,
}

fn fate(keyword: &str) -> Fate {
    match keyword {
        "type"
        | "properties"
        | "required"
        | "additionalProperties"
        | "items"
        | "anyOf"
        | "enum"
        | "const"
        | "$ref"
        | "$defs"
        | "title"
        | "description"
        | "pattern"
        | "minimum"
        | "maximum"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "multipleOf"
        | "minItems"
        | "maxItems" => Fate::Kept,
        "$schema" | "$id" | "$comment" | "default" | "examples" | "format" | "deprecated" | "readOnly"
        | "writeOnly" | "uniqueItems" | "contains" | "minContains" | "maxContains" | "minLength"
        | "maxLength" | "minProperties" | "maxProperties" => Fate::LeftOut,
        _ => Fate::Refused,
    }
}

fn strict_object(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    if !may_be_strict(object) {
        return None;
    }
    let mut strict = Map::new();
    for (keyword, value) in object {
        match fate(keyword) {
            Fate::Kept => strict.insert(keyword.clone(), strict_value(keyword, value)?),
            Fate::LeftOut => continue,
            Fate::Refused => return None,
        };
    }
    // Strict servers reject a reference with a sibling description.
    if strict.len() > 1
        && let Some(reference) = strict.remove("$ref")
    {
        if strict.keys().any(|keyword| !matches!(keyword.as_str(), "title" | "description" | "$defs")) {
            return None;
        }
        strict.insert("anyOf".into(), json!([{"$ref": reference}]));
    }
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let is_optional = |name: &String| {
            let required = object.get("required").and_then(Value::as_array);
            required.is_none_or(|required| !required.iter().any(|known| known == name))
        };
        // An optional property that cannot be null has no strict form.
        if properties.iter().any(|(name, schema)| is_optional(name) && !allows_null(schema)) {
            return None;
        }
        strict.insert("required".into(), properties.keys().cloned().map(Value::from).collect());
        strict.insert("additionalProperties".into(), false.into());
    }
    Some(strict)
}

/// Checks whether a schema defines the type of its values, and all properties of an object.
fn may_be_strict(object: &Map<String, Value>) -> bool {
    let has_one_of = |keywords: &[&str]| keywords.iter().any(|keyword| object.contains_key(*keyword));
    let is_free = object.get("additionalProperties").is_some_and(|other| *other != Value::Bool(false));
    let is_object = object.get("type").is_some_and(|kind| kind == "object");
    if object.get("properties").is_some_and(Value::is_object) {
        // If properties and a choice are siblings, each would forbid what the other allows.
        !is_free && has_one_of(&["type", "const"]) && !has_one_of(&["anyOf", "$ref", "enum"])
    } else {
        !is_free && !is_object && has_one_of(&["type", "$ref", "anyOf", "enum", "const"])
    }
}

fn strict_value(keyword: &str, value: &Value) -> Option<Value> {
    match (keyword, value) {
        ("properties" | "$defs", Value::Object(schemas)) => {
            let schemas = schemas.iter().map(|(name, schema)| Some((name.clone(), strict_schema(schema)?)));
            schemas.collect::<Option<_>>().map(Value::Object)
        }
        ("anyOf", Value::Array(schemas)) => {
            schemas.iter().map(strict_schema).collect::<Option<_>>().map(Value::Array)
        }
        ("items", schema) => strict_schema(schema),
        (_, value) => Some(value.clone()),
    }
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
    fn schema_without_strict_form_returns_none() {
        for schema in [
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "object"}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            json!({"type": "array", "items": {"oneOf": []}}),
            json!({"type": "object", "properties": {"any": true}, "required": ["any"]}),
            json!({"type": "object", "properties": {"any": {"description": "Any"}}, "required": ["any"]}),
            json!({"type": "string", "contentEncoding": "base64"}),
            json!({"$ref": "#/$defs/A", "minimum": 1}),
            // Schema of an enum with `#[serde(flatten)]`: no other property is allowed in either part.
            json!({
                "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                "anyOf": [{"type": "object", "properties": {"mail": {"type": "string"}}, "required": ["mail"]}],
            }),
            json!({"type": "object", "properties": {}, "$ref": "#/$defs/A"}),
            json!({"type": "object", "properties": {}, "enum": [{}]}),
        ] {
            assert_eq!(strict_schema(&schema), None, "{schema}");
        }
    }

    #[test]
    fn described_references_stand_alone_and_constraints_are_dropped() {
        let schema = json!({
            "type": "object",
            "properties": {
                "place": {"$ref": "#/$defs/Place", "description": "Where it is."},
                "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": true},
            },
            "required": ["place", "tags"],
            "$defs": {"Place": {"type": "string"}},
        });
        let properties = strict_schema(&schema).unwrap()["properties"].take();
        assert_eq!(
            properties,
            json!({
                "place": {"anyOf": [{"$ref": "#/$defs/Place"}], "description": "Where it is."},
                "tags": {"type": "array", "items": {"type": "string"}},
            })
        );
    }
}
