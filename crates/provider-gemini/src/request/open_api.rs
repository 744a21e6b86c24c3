//! Schemas in the subset of OpenAPI 3.0 that every version of the API reads.
//!
//! [`SchemaForm::OpenApi`](crate::SchemaForm::OpenApi) documents the changes.

use serde_json::{Map, Value, json};

/// The keywords of the subset whose values are sent unchanged.
const UNCHANGED: [&str; 15] = [
    "title", "description", "default", "example", "nullable", "pattern", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "propertyOrdering",
];
/// The formats of the subset.
const FORMATS: [&str; 7] = ["date-time", "duration", "time", "float", "double", "int32", "int64"];
/// The most schemas inside one schema, those behind references included.
const MOST: usize = 10_000;
/// The most bytes of names, texts and other values inside one schema, those behind references included.
const MOST_BYTES: usize = 1 << 20;
/// The deepest nesting of a schema, references included.
const MOST_NESTED: usize = 64;

/// Returns a schema of an answer; `None` if it demands nothing.
pub(super) fn schema(schema: &Value) -> Option<Value> {
    let mut rewriter =
        Rewriter { root: schema, open: Vec::new(), depth: 0, left: MOST, left_bytes: MOST_BYTES };
    Some(rewriter.rewrite(schema))
        .filter(|schema| schema.as_object().is_some_and(|fields| !fields.is_empty()))
}

/// Returns the schema of a tool's arguments; `None` if it has no properties.
pub(super) fn parameters(parameters: &Value) -> Option<Value> {
    let properties = |schema: &Value| schema.get("properties")?.as_object().map(Map::len);
    schema(parameters)
        .filter(|schema| properties(schema).is_some_and(|count| count > 0) || schema.get("anyOf").is_some())
}

struct Rewriter<'a> {
    /// The schema in which references are looked up.
    root: &'a Value,
    /// The references that are being followed.
    open: Vec<&'a str>,
    depth: usize,
    /// The number of schemas that may still be written. Beyond it, each is any object.
    left: usize,
    /// The number of bytes that may still be copied.
    left_bytes: usize,
}

impl<'a> Rewriter<'a> {
    fn rewrite(&mut self, schema: &'a Value) -> Value {
        if self.depth >= MOST_NESTED || self.left == 0 {
            return any_object();
        }
        self.left -= 1;
        let Value::Object(fields) = schema else { return Value::Object(Map::new()) };
        let Some(left_bytes) = self.left_bytes.checked_sub(copied_bytes(fields)) else {
            self.left = 0;
            return any_object();
        };
        self.left_bytes = left_bytes;
        self.depth += 1;
        let mut written = Map::new();
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            merge(&mut written, self.follow(reference));
        }
        for (key, value) in fields {
            self.keyword(key, value, &mut written);
        }
        self.depth -= 1;
        Value::Object(written)
    }

    /// Returns the schema that a reference names, or any object if it is unknown or contains itself.
    fn follow(&mut self, reference: &'a str) -> Value {
        let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let Some(target) = target.filter(|_| !self.open.contains(&reference)) else { return any_object() };
        self.open.push(reference);
        let written = self.rewrite(target);
        self.open.pop();
        written
    }

    fn keyword(&mut self, key: &str, value: &'a Value, written: &mut Map<String, Value>) {
        match (key, value) {
            ("type", value) => types(value, written),
            ("enum", Value::Array(values)) => enumerated(values, written),
            ("const", value) => enumerated(std::slice::from_ref(value), written),
            ("format", Value::String(format)) if !FORMATS.contains(&format.as_str()) => {}
            ("format", value) => drop(written.insert(key.to_owned(), value.clone())),
            // A reference or a part of `allOf` may have required names, too.
            ("required", names) => merge(written, json!({ "required": names })),
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, schema)| (name.clone(), self.rewrite(schema)));
                let properties = Value::Object(properties.collect());
                merge(written, json!({ "properties": properties }));
            }
            ("items", value) => {
                let items = self.rewrite(value);
                written.insert("items".to_owned(), items);
            }
            ("anyOf" | "oneOf", Value::Array(schemas)) => self.alternatives(schemas, written),
            ("allOf", Value::Array(schemas)) => {
                for schema in schemas {
                    merge(written, self.rewrite(schema));
                }
            }
            (key, value) if UNCHANGED.contains(&key) => drop(written.insert(key.to_owned(), value.clone())),
            _ => {}
        }
    }

    /// Writes alternatives. `null` among them makes the value nullable, and a single other one stands for all.
    fn alternatives(&mut self, schemas: &'a [Value], written: &mut Map<String, Value>) {
        let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let (null, others): (Vec<&Value>, Vec<&Value>) = schemas.iter().partition(is_null);
        if !null.is_empty() {
            written.insert("nullable".to_owned(), true.into());
        }
        let others: Vec<Value> = others.into_iter().map(|schema| self.rewrite(schema)).collect();
        match <[Value; 1]>::try_from(others) {
            Ok([only]) => merge(written, only),
            Err(others) => drop(written.insert("anyOf".to_owned(), Value::Array(others))),
        }
    }
}

/// Returns the bytes that are copied from a schema itself, without those of the schemas in it.
fn copied_bytes(fields: &Map<String, Value>) -> usize {
    let copied = fields.iter().map(|(key, value)| match (key.as_str(), value) {
        ("properties", Value::Object(properties)) => properties.keys().map(String::len).sum(),
        ("type" | "enum" | "const" | "format" | "required", value) => size_of(value),
        (key, value) if UNCHANGED.contains(&key) => size_of(value),
        _ => 0,
    });
    copied.sum()
}

/// Returns the approximate bytes of a value on the wire.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size_of(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value) + 4).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn any_object() -> Value {
    json!({ "type": "object" })
}

/// Writes a type, or several.
fn types(value: &Value, written: &mut Map<String, Value>) {
    let names: Vec<&str> = match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.contains(&"null") {
        written.insert("nullable".to_owned(), true.into());
    }
    let others: Vec<&str> = names.into_iter().filter(|name| *name != "null").collect();
    match others.as_slice() {
        [] => {}
        [only] => drop(written.insert("type".to_owned(), (*only).into())),
        several => {
            let several = several.iter().map(|name| json!({ "type": name }));
            written.insert("anyOf".to_owned(), several.collect());
        }
    }
}

/// Writes the values of an enumeration, which has only strings. Other values are left to the type.
fn enumerated(values: &[Value], written: &mut Map<String, Value>) {
    if values.iter().all(Value::is_string) {
        written.entry("type").or_insert_with(|| "string".into());
        written.insert("enum".to_owned(), values.into());
    }
}

/// Adds a schema to another one: properties and required names of both, otherwise the first.
fn merge(written: &mut Map<String, Value>, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        match (written.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(value)) => {
                for (name, schema) in value {
                    known.entry(name).or_insert(schema);
                }
            }
            (Some(Value::Array(known)), Value::Array(values)) => {
                known.extend(values.into_iter().filter(|value| !known.contains(value)).collect::<Vec<_>>());
            }
            (Some(_), _) => {}
            (None, value) => drop(written.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests;
