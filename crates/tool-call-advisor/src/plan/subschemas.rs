//! The schemas within a schema, and those that its references lead to.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ptr;

use serde_json::{Map, Value, json};

/// Keywords that have data.
const DATA: [&str; 6] = ["const", "enum", "default", "examples", "dependentRequired", "$vocabulary"];

/// Keywords whose members are schemas, with names that are no keywords.
const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What the value of a keyword is.
pub(super) enum Kind {
    Data,
    /// Schemas by name.
    Map,
    Reference,
    /// A schema, schemas, or what has none.
    Other,
}

impl Kind {
    pub(super) fn of(keyword: &str) -> Self {
        match keyword {
            data if DATA.contains(&data) => Self::Data,
            map if MAPS.contains(&map) => Self::Map,
            reference if REFERENCES.contains(&reference) => Self::Reference,
            _ => Self::Other,
        }
    }
}

/// Returns the schemas directly within the value of a keyword.
pub(super) fn schemas_within<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    match (Kind::of(keyword), value) {
        (Kind::Map, Value::Object(schemas)) => schemas.values().collect(),
        (Kind::Other, Value::Object(_)) => vec![value],
        (Kind::Other, Value::Array(schemas)) => schemas.iter().flat_map(flat).collect(),
        _ => Vec::new(),
    }
}

/// Returns the values of a list in lists.
fn flat(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        _ => vec![value],
    }
}

/// Passes each schema within a schema to `visit`, and the schema itself.
pub(super) fn visit<'a>(schema: &'a Value, visit_one: &mut impl FnMut(&'a Value)) {
    visit_one(schema);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        schemas_within(keyword, value).into_iter().for_each(|inner| visit(inner, visit_one));
    }
}

/// A schema within a whole one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The innermost schema around it with an address, which its references are relative to.
    root: &'a Value,
    pub(super) node: &'a Value,
}

impl<'a> Place<'a> {
    /// Returns the place of a whole schema.
    pub(super) fn of_whole(whole: &'a Value) -> Self {
        Self { root: whole, node: whole }
    }

    /// Returns the place of a schema directly within this one.
    pub(super) fn at(self, node: &'a Value) -> Self {
        let address = node.get("$id").and_then(Value::as_str);
        Self { root: if address.is_some_and(|id| !id.starts_with('#')) { node } else { self.root }, node }
    }
}

/// A whole schema, whose references are followed.
pub(super) struct Document<'a> {
    whole: &'a Value,
    /// The schemas with a name, such as an anchor.
    named: OnceCell<HashMap<&'a str, Vec<Place<'a>>>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(whole: &'a Value) -> Self {
        Self { whole, named: OnceCell::new() }
    }

    pub(super) fn is_whole(&self, place: Place<'a>) -> bool {
        ptr::eq(place.node, self.whole)
    }

    /// Returns the schema that a reference leads to by its place in the whole; `None` if it is of another form.
    pub(super) fn target_by_place(&self, from: Place<'a>, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#').filter(|to| to.is_empty() || to.starts_with('/'))?;
        ptr::eq(from.root, self.whole).then_some(())?;
        self.whole.pointer(&decoded(pointer))
    }

    /// Returns the schemas that a reference may lead to.
    pub(super) fn targets(&self, from: Place<'a>, keyword: &str, reference: &str) -> Vec<Place<'a>> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let whole = Place::of_whole(self.whole);
        let mut roots = match address {
            "" => vec![Place::of_whole(from.root)],
            address => self.named(address).to_vec(),
        };
        if keyword != "$ref" && !roots.iter().any(|root| ptr::eq(root.node, whole.node)) {
            roots.push(whole);
        }
        match fragment {
            "" => roots,
            pointer if pointer.starts_with('/') => {
                let pointer = decoded(pointer);
                roots.into_iter().filter_map(|root| Some(root.at(root.node.pointer(&pointer)?))).collect()
            }
            anchor => self.named(anchor).to_vec(),
        }
    }

    /// Returns the schemas with this anchor or address. An address may be relative, so its end counts.
    fn named(&self, name: &str) -> &[Place<'a>] {
        let named = self.named.get_or_init(|| {
            let mut named = HashMap::new();
            note_names(Place::of_whole(self.whole), &mut named);
            named
        });
        named.get(end_of(name)).map_or(&[], Vec::as_slice)
    }
}

/// The name of the work of a schema, in a value that it may have.
pub(super) const WORK: &str = "\u{0}work";

/// The same in JSON.
pub(super) const WORK_IN_JSON: &str = r"\u0000work";

/// Checks whether a schema is of a draft before 2019, which ignores what stands beside a reference.
pub(super) fn is_older(schema: &Value) -> Option<bool> {
    Some(schema.get("$schema")?.as_str()?.contains("/draft-0"))
}

/// Returns the schema with the work of each schema within it, as a value that it may have: the only one, so that the validator
/// compares a value with it before anything that a schema leads to.
pub(super) fn with_work(schema: &Value) -> Value {
    counted(schema, false)
}

fn counted(schema: &Value, is_older_around: bool) -> Value {
    let is_older = is_older(schema).unwrap_or(is_older_around);
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Array(items) => return items.iter().map(|item| counted(item, is_older)).collect(),
        _ => return schema.clone(),
    };
    let each = |(keyword, value): (&String, &Value)| {
        let value = match (Kind::of(keyword), value) {
            (Kind::Map, Value::Object(schemas)) => {
                schemas.iter().map(|(name, schema)| (name.clone(), counted(schema, is_older))).collect()
            }
            (Kind::Other, Value::Array(_) | Value::Object(_)) => counted(value, is_older),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    };
    let mut all: Map<_, _> = keywords.iter().map(each).collect();
    // It would be ignored. What the reference leads to has its own.
    if is_older && keywords.get("$ref").is_some_and(Value::is_string) {
        return Value::Object(all);
    }
    let work = keywords.iter().map(|(keyword, value)| 1 + keyword.len() / 64 + entries(value)).sum::<usize>();
    let work = json!([{ WORK: 1 + work }]);
    if !all.contains_key("enum") {
        all.insert(String::from("enum"), work);
    } else if let Some(Value::Array(checks)) = all.get_mut("allOf") {
        checks.push(json!({ "enum": work }));
    } else {
        all.insert(String::from("allOf"), json!([{ "enum": work }]));
    }
    Value::Object(all)
}

/// The values directly within a value, and its text.
fn entries(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::String(text) => text.len() / 64,
        _ => 0,
    }
}

/// Returns the work of a schema, if this is the value that has it.
pub(super) fn work_in(value: &Value) -> Option<usize> {
    usize::try_from(value.get(WORK)?.as_u64()?).ok()
}

fn note_names<'a>(place: Place<'a>, named: &mut HashMap<&'a str, Vec<Place<'a>>>) {
    for name in ["$id", "id", "$anchor", "$dynamicAnchor"] {
        if let Some(name) = place.node.get(name).and_then(Value::as_str) {
            named.entry(end_of(name)).or_default().push(place);
        }
    }
    for (keyword, value) in place.node.as_object().into_iter().flatten() {
        schemas_within(keyword, value).into_iter().for_each(|inner| note_names(place.at(inner), named));
    }
}

fn end_of(name: &str) -> &str {
    name.trim_matches('#').rsplit('/').next().unwrap_or_default()
}

/// Replaces the escaped bytes of an address.
fn decoded(address: &str) -> String {
    let (mut decoded, mut rest) = (Vec::new(), address);
    while let Some((before, after)) = rest.split_once('%') {
        decoded.extend_from_slice(before.as_bytes());
        let escaped = after.split_at_checked(2);
        let escaped = escaped.and_then(|(hex, after)| Some((u8::from_str_radix(hex, 16).ok()?, after)));
        let (byte, after) = escaped.unwrap_or((b'%', after));
        decoded.push(byte);
        rest = after;
    }
    decoded.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_all_forms_are_followed() {
        let whole = json!({
            "$defs": {
                "a b/c": {"minimum": 1},
                "named": {"$anchor": "here", "minimum": 2},
                "other": {
                    "$id": "https://example.org/schemas/other.json", "minimum": 3,
                    "$defs": {"in": {"minimum": 4}}
                }
            },
            "const": {"$anchor": "data"}
        });
        let document = Document::new(&whole);
        let first = Place::of_whole(&whole);
        let other = first.at(&whole["$defs"]["other"]);
        let minima = |targets: Vec<Place<'_>>| -> Vec<Value> {
            targets.iter().map(|target| target.node["minimum"].clone()).collect()
        };
        for (from, reference, found) in [
            (first, "#/$defs/a%20b~1c", vec![json!(1)]),
            (first, "#/$defs/a b~1c", vec![json!(1)]),
            (first, "#here", vec![json!(2)]),
            (first, "other.json", vec![json!(3)]),
            (first, "https://example.org/schemas/other.json#/$defs/in", vec![json!(4)]),
            (other, "#/$defs/in", vec![json!(4)]),
            (other, "#", vec![json!(3)]),
            (first, "#/$defs/in", vec![]),
            (first, "#data", vec![]),
            (first, "#%zz%", vec![]),
        ] {
            let targets = document.targets(from, "$ref", reference);
            let inner = targets.iter().flat_map(|target| document.targets(*target, "$ref", "#/$defs/in"));
            assert!(inner.count() <= usize::from(reference.contains("other") || !ptr::eq(from.root, &whole)));
            assert_eq!(minima(targets), found, "{reference}");
        }
        assert_eq!(minima(document.targets(other, "$recursiveRef", "#")), [json!(3), json!(null)]);
    }
}
