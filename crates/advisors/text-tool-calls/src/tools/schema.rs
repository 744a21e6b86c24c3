//! `Schema`: a part of the schema of a tool's arguments, and the value of a text according to it.

use serde_json::{Map, Value};

/// The number of references and alternatives that are followed from one schema.
const MAX_STEPS: usize = 8;

/// A schema that allows nothing.
static NO_SCHEMA: Value = Value::Null;

/// A part of a tool's schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    /// The part; `null` if the schema does not have it.
    part: &'a Value,
    /// The whole schema, into which local references point.
    root: &'a Value,
}

impl<'a> Schema<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { part: root, root }
    }

    /// Returns the schema of a tool that does not exist.
    pub(crate) fn none() -> Self {
        Self::new(&NO_SCHEMA)
    }

    /// Checks whether a value of this type is allowed. A schema that names no type allows none.
    pub(crate) fn allows(self, kind: &str) -> bool {
        self.variants().iter().any(|schema| names_type(schema, kind))
    }

    /// Checks whether objects may have this member.
    pub(crate) fn has_property(self, name: &str) -> bool {
        self.variants()
            .iter()
            .any(|schema| schema.get("properties").is_some_and(|all| all.get(name).is_some()))
    }

    /// Returns the schema of a member.
    pub(crate) fn property(self, name: &str) -> Self {
        self.part(|schema| schema.get("properties")?.get(name))
    }

    /// Returns the schema of the elements of a list.
    pub(crate) fn items(self) -> Self {
        self.part(|schema| schema.get("items"))
    }

    /// Returns the names of the members of objects, in order.
    pub(crate) fn property_names(self) -> Vec<String> {
        let variants = self.variants();
        let properties = variants.iter().find_map(|schema| schema.get("properties")?.as_object());
        properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns the names of the required members of objects.
    pub(crate) fn required(self) -> Vec<String> {
        let variants = self.variants();
        let required = variants.iter().find_map(|schema| schema.get("required")?.as_array());
        required.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// Returns a value that the schema gives: an example, the default, or the first allowed value.
    pub(crate) fn given_example(self) -> Option<Value> {
        self.variants().iter().find_map(|schema| {
            let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
            let default = || schema.get("default").filter(|value| !value.is_null()).cloned();
            first("examples")
                .or_else(default)
                .or_else(|| schema.get("const").cloned())
                .or_else(|| first("enum"))
        })
    }

    fn part(self, part: impl Fn(&'a Value) -> Option<&'a Value>) -> Self {
        let found = self.variants().into_iter().find_map(part);
        Self { part: found.unwrap_or(&NO_SCHEMA), root: self.root }
    }

    /// Returns the schema and its alternatives, with references resolved.
    fn variants(self) -> Vec<&'a Value> {
        let mut found = vec![self.part];
        let mut next = 0;
        while let Some(schema) = found.get(next).copied().filter(|_| next < MAX_STEPS) {
            next += 1;
            let reference =
                schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
            found.extend(reference.and_then(|path| self.root.pointer(path)));
            let choices = ["anyOf", "oneOf", "allOf"].into_iter();
            found.extend(choices.filter_map(|key| schema.get(key)?.as_array()).flatten());
        }
        found
    }
}

fn names_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(named)) => named == kind,
        Some(Value::Array(named)) => named.iter().any(|named| named == kind),
        _ => match kind {
            "object" => schema.get("properties").is_some(),
            "array" => schema.get("items").is_some(),
            "string" => {
                let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
                listed.chain(schema.get("const")).any(Value::is_string)
            }
            _ => false,
        },
    }
}

/// Returns the value of a text without elements. It has a type of the schema if the text has its form.
///
/// Otherwise it is a string, which the check of the arguments refuses with a reason.
pub(crate) fn leaf_value(text: &str, schema: Schema<'_>) -> Value {
    if schema.allows("string") {
        return Value::from(text);
    }
    if let Ok(read) = serde_json::from_str::<Value>(text)
        && type_names(&read).iter().any(|kind| schema.allows(kind))
    {
        return read;
    }
    match text.to_ascii_lowercase().as_str() {
        "true" if schema.allows("boolean") => Value::Bool(true),
        "false" if schema.allows("boolean") => Value::Bool(false),
        "" if schema.allows("array") => Value::Array(Vec::new()),
        "" if schema.allows("object") => Value::Object(Map::new()),
        _ => Value::from(text),
    }
}

fn type_names(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}
