//! Tests of `request::open_api`.

use super::*;

#[test]
fn schemas_are_rewritten_as_documented() {
    let cases = [
        (
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            json!({"$schema": "x", "type": ["string", "null"], "format": "uri", "minLength": 1}),
            json!({"type": "string", "nullable": true, "minLength": 1}),
        ),
        (json!({"type": ["string", "integer"]}), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer"})),
        (json!({"type": "integer", "format": "int32"}), json!({"type": "integer", "format": "int32"})),
        (
            json!({"oneOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0}]}),
            json!({"nullable": true, "type": "number"}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"const": "x"}}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string", "enum": ["x"]}}]}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["a", "b"]}]}),
            json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}], "properties": {"b": {}}, "required": ["b"]}),
            json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        ),
        (
            json!({"properties": {"p": {"$ref": "#/$defs/P", "description": "d"}}, "$defs": {"P": {"type": "string"}}}),
            json!({"properties": {"p": {"type": "string", "description": "d"}}}),
        ),
        (
            json!({"properties": {"next": {"$ref": "#"}}, "type": "object"}),
            json!({"properties": {"next": {"properties": {"next": {"type": "object"}}, "type": "object"}}, "type": "object"}),
        ),
        (
            json!({"properties": {"x": {"$ref": "elsewhere"}}}),
            json!({"properties": {"x": {"type": "object"}}}),
        ),
        (json!({"properties": {"x": true}}), json!({"properties": {"x": {}}})),
    ];
    for (written, expected) in cases {
        assert_eq!(schema(&written), Some(expected), "{written}");
    }
    for nothing in [json!(true), json!({}), json!({"additionalProperties": {}})] {
        assert_eq!(schema(&nothing), None, "{nothing}");
    }
}

#[test]
fn parameters_without_properties_are_none() {
    assert_eq!(parameters(&json!({"type": "object", "properties": {}})), None);
    assert!(parameters(&json!({"type": "object", "properties": {"a": {"type": "string"}}})).is_some());
}

#[test]
fn law_r1_references_multiply_within_a_bound() {
    let mut definitions = Map::new();
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(format!("d{n}"), json!({"properties": {"a": next.clone(), "b": next}}));
    }
    let written = schema(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).expect("a schema");
    assert!(written.to_string().len() < 100 * MOST);
    let deep = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
    assert!(schema(&deep).is_some());
}

#[test]
fn law_r1_referenced_texts_multiply_within_a_bound() {
    let long = "x".repeat(MOST_BYTES / 10);
    let names: Vec<String> = (0..MOST_BYTES / 100).map(|n| format!("n{n}")).collect();
    let named: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({}))).collect();
    let definitions = [
        json!({"description": long}),
        json!({"default": [{ &long: 1 }, [&long]]}),
        json!({"enum": names}),
        json!({"const": long}),
        json!({"required": names}),
        json!({"properties": named}),
        json!({"type": names}),
        json!({"anyOf": vec![1; MOST_BYTES / 10]}),
    ];
    for definition in definitions {
        let properties = (0..1_000).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/d"})));
        let root = json!({"properties": properties.collect::<Map<_, _>>(), "$defs": {"d": definition}});
        let written = schema(&root).expect("a schema");
        let size = written.to_string().len();
        assert!(size < 4 * MOST_BYTES, "{size} bytes");
        assert_eq!(written["properties"].as_object().map(Map::len), Some(1_000));
        assert_eq!(written["properties"]["p999"], json!({"type": "object"}));
    }
    let own = json!({"properties": {"a": {"description": long}, "b": {"description": long}}});
    assert_eq!(schema(&own), Some(own));
}
