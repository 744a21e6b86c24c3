//! The schemas within a schema, and those that its references lead to.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ptr;

use serde_json::Value;

/// Keywords that have data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

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
        (Kind::Other, Value::Array(schemas)) => schemas.iter().collect(),
        _ => Vec::new(),
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

/// The checks of a value by a schema elsewhere, such as that of JSON Schema itself.
const ELSEWHERE: usize = 1_000;

/// Returns the most checks that a schema within a whole one makes of one value, with those of its references.
pub(super) fn most_checks(whole: &Value) -> usize {
    let mut checks = Checks { document: Document::new(whole), known: HashMap::new() };
    let (mut waiting, mut most) = (vec![Place::of_whole(whole)], 0);
    while let Some(place) = waiting.pop() {
        most = most.max(checks.of(place));
        for (keyword, value) in place.node.as_object().into_iter().flatten() {
            waiting.extend(schemas_within(keyword, value).into_iter().map(|inner| place.at(inner)));
        }
    }
    most
}

/// The checks of one value by each schema. One that is being counted has none more: the validator follows no circle.
struct Checks<'a> {
    document: Document<'a>,
    known: HashMap<*const Value, usize>,
}

impl<'a> Checks<'a> {
    fn of(&mut self, place: Place<'a>) -> usize {
        let node = ptr::from_ref(place.node);
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        self.known.insert(node, 0);
        let mut sum = 1_usize;
        for (keyword, value) in place.node.as_object().into_iter().flatten() {
            let same = match (keyword.as_str(), value) {
                (_, Value::String(to)) if matches!(Kind::of(keyword), Kind::Reference) => {
                    let targets = self.document.targets(place, keyword, to);
                    sum = sum.saturating_add(if targets.is_empty() { ELSEWHERE } else { 0 });
                    targets
                }
                (
                    "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "contentSchema"
                    | "dependentSchemas" | "dependencies",
                    _,
                ) => schemas_within(keyword, value).into_iter().map(|inner| place.at(inner)).collect(),
                _ => Vec::new(),
            };
            sum = same.into_iter().fold(sum, |sum, inner| sum.saturating_add(self.of(inner)));
        }
        // To know what is left, they are checked once more.
        if ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|keyword| place.node.get(keyword).is_some())
        {
            sum = sum.saturating_mul(2);
        }
        self.known.insert(node, sum);
        sum
    }
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
    use serde_json::json;

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
