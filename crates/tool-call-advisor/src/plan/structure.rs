//! `misfits`: compares arguments with the structure that a schema describes, with bounded work.
//!
//! The schema may be that of a server. So it is read as it is written, never compiled, and each step is counted. The keywords
//! that count are those by which a value can only fit less, in every draft: types, values, bounds, properties, items, and
//! schemas that are joined by `allOf`, `anyOf` and `$ref`. `oneOf` is taken for `anyOf`. Any other keyword, what stands beside
//! a reference, a reference that leads out of the document, and a schema with an address or a draft of its own refuse nothing
//! here: the tool itself has to check them.

use std::borrow::Cow;
use std::io;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Number, Value};

/// The most misfits that are noted. As many are corrected.
const MOST: usize = 256;

/// The most schemas on the way to a value. Below, everything fits.
const MOST_LEVELS: usize = 512;

/// The longest text of a value, in bytes.
const MOST_SHOWN: usize = 200;

/// The bytes of a text that are read in one step.
const BYTES: usize = 64;

/// Keywords whose members are schemas, with names that are no keywords.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// A part of the arguments that does not fit.
#[derive(Debug)]
pub(crate) struct Misfit<'a> {
    /// Where it is, as a JSON pointer.
    pub(crate) place: String,
    text: String,
    /// The types of which one would fit, if that is what is wrong.
    types: Vec<&'a str>,
}

impl Misfit<'_> {
    /// Returns what is wrong and where, for the model.
    pub(crate) fn described(&self) -> String {
        match self.place.as_str() {
            "" => self.text.clone(),
            place => format!("{}: {}", shortened(place.to_owned()), self.text),
        }
    }

    /// Checks whether a value of this type would fit in its place.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.types.contains(&name)
    }
}

/// Returns what does not fit, and whether no more than these steps were taken: otherwise more may not fit.
pub(crate) fn misfits<'a>(schema: &'a Value, arguments: &Value, steps: usize) -> (Vec<Misfit<'a>>, bool) {
    let mut comparison = Comparison::new(schema, steps);
    comparison.fits(schema, arguments, MOST_LEVELS);
    (comparison.found.unwrap_or_default(), comparison.steps.is_some())
}

/// Returns the first reference of a schema that leads to nothing in it. Servers of models refuse it.
///
/// One by a name or an address leads to nothing if no part of the schema has such, and it is not the address of the whole.
pub(crate) fn lost_reference(whole: &Value) -> Option<&str> {
    let mut waiting = vec![whole];
    let (mut has_names, mut by_name) = (false, None);
    while let Some(schema) = waiting.pop() {
        // What is apart is not read: it may have names.
        let is_apart = is_apart(schema) && !std::ptr::eq(schema, whole);
        has_names |= is_apart || ["$anchor", "$dynamicAnchor"].iter().any(|name| has_text(schema, name));
        let keywords = match schema {
            _ if is_apart => continue,
            Value::Object(keywords) => keywords,
            Value::Array(items) => {
                waiting.extend(items);
                continue;
            }
            _ => continue,
        };
        for (keyword, node) in keywords {
            match (keyword.as_str(), node) {
                ("$ref", Value::String(to)) => {
                    let leads = |place: &str| place.split('/').skip(1).try_fold(whole, within).is_some();
                    match place_of(to) {
                        Some(place) if !leads(&place) => return Some(to),
                        None if !names_whole(to, whole) => by_name = Some(to.as_str()),
                        _ => {}
                    }
                }
                (name, Value::Object(members)) if NAMED.contains(&name) => waiting.extend(members.values()),
                ("const" | "enum" | "default" | "example" | "examples", _) => {}
                (note, _) if note.starts_with("x-") => {}
                _ => waiting.push(node),
            }
        }
    }
    by_name.filter(|_| !has_names)
}

/// Checks whether a reference names the whole, by its address or the end of it.
fn names_whole(to: &str, whole: &Value) -> bool {
    let to = to.trim_start_matches("./");
    let address = to.split('#').next().unwrap_or_default();
    let is_own = |own: &str| {
        let own_address = own.split('#').next().unwrap_or_default();
        own.ends_with(to) || (!address.is_empty() && own_address.ends_with(address))
    };
    to.is_empty() || ["$id", "id"].iter().filter_map(|name| whole.get(name)?.as_str()).any(is_own)
}

/// Checks whether a schema within another has an address or a draft of its own, so that it is read differently.
fn is_apart(schema: &Value) -> bool {
    ["$schema", "$id", "id"].iter().any(|name| has_text(schema, name))
}

fn has_text(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).is_some_and(Value::is_string)
}

/// A step on the way to a value.
#[derive(Clone, Copy)]
enum Step<'v> {
    Member(&'v str),
    Item(usize),
}

impl Step<'_> {
    fn length(self) -> usize {
        match self {
            Self::Member(name) => name.len() + 1,
            Self::Item(_) => 8,
        }
    }

    /// Returns it as a part of a JSON pointer.
    fn pointer(self) -> String {
        match self {
            Self::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Self::Item(at) => format!("/{at}"),
        }
    }
}

struct Comparison<'a, 'v> {
    whole: &'a Value,
    /// The steps that are left. Without any, everything fits.
    steps: Option<usize>,
    place: Vec<Step<'v>>,
    /// What does not fit. `None` within alternatives, of which one may fit.
    found: Option<Vec<Misfit<'a>>>,
}

impl<'a, 'v> Comparison<'a, 'v> {
    fn new(whole: &'a Value, steps: usize) -> Self {
        Self { whole, steps: Some(steps), place: Vec::new(), found: Some(Vec::new()) }
    }

    /// Takes steps. Returns false if there are not so many.
    fn take(&mut self, steps: usize) -> bool {
        self.steps = self.steps.and_then(|left| left.checked_sub(steps));
        self.steps.is_some()
    }

    /// Checks whether each item fits, as long as there are steps.
    fn all<I>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        mut fits: impl FnMut(&mut Self, I) -> bool,
    ) -> bool {
        let mut all = true;
        for item in items {
            if !self.take(1) {
                break;
            }
            all &= fits(self, item);
        }
        all
    }

    /// Notes a misfit, and returns false.
    fn misfit(&mut self, types: Vec<&'a str>, text: impl FnOnce() -> String) -> bool {
        let length = || self.place.iter().map(|step| step.length()).sum::<usize>();
        let has_room =
            |found: &&mut Vec<_>| found.is_empty() || (found.len() < MOST && length() <= MOST_SHOWN);
        if let Some(found) = self.found.as_mut().filter(has_room) {
            let place = self.place.iter().map(|step| step.pointer()).collect();
            found.push(Misfit { place, text: text(), types });
        }
        false
    }

    /// Checks whether a value fits. `levels` are those that are left.
    fn fits(&mut self, schema: &'a Value, value: &'v Value, levels: usize) -> bool {
        let Some(levels) = levels.checked_sub(1).filter(|_| self.take(1)) else { return true };
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => {
                return self.misfit(Vec::new(), || format!("{} is not allowed", shown(value)));
            }
            _ => return true,
        };
        if !std::ptr::eq(schema, self.whole) && is_apart(schema) {
            return true;
        }
        if let Some(Value::String(to)) = keywords.get("$ref") {
            return self.target(to).is_none_or(|target| self.fits(target, value, levels));
        }
        self.all(keywords, |all, (keyword, operand)| {
            all.fits_keyword(keywords, keyword, operand, value, levels)
        })
    }

    /// Returns the schema that a reference leads to by its place in the whole.
    fn target(&mut self, to: &str) -> Option<&'a Value> {
        self.take(1 + to.len() / 4).then_some(())?;
        let pointer = place_of(to)?;
        let mut schema = self.whole;
        for name in pointer.split('/').skip(1) {
            self.take(1).then_some(())?;
            schema = within(schema, name).filter(|schema| !is_apart(schema))?;
        }
        Some(schema)
    }

    fn fits_keyword(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        operand: &'a Value,
        value: &'v Value,
        levels: usize,
    ) -> bool {
        match (keyword, operand, value) {
            ("type", types, value) => {
                // A name that is not known may be that of any type.
                let fits = names(types).any(|name| is_of(value, name)) || names(types).next().is_none();
                let names = || names(types).collect::<Vec<_>>();
                fits || self
                    .misfit(names(), || format!("{} is not of {}", shown(value), types_text(&names())))
            }
            ("enum", Value::Array(allowed), value) => {
                allowed.iter().any(|one| self.same(one, value))
                    || self
                        .misfit(Vec::new(), || format!("{} is not one of {}", shown(value), listed(allowed)))
            }
            ("const", allowed, value) => {
                self.same(allowed, value)
                    || self.misfit(Vec::new(), || format!("{} is not {}", shown(value), shown(allowed)))
            }
            (bound, Value::Number(bound_number), Value::Number(number)) => {
                let (is, limit) = (float(number), float(bound_number));
                let (is_beyond, text) = match bound {
                    "minimum" => (is < limit, "less than the minimum of"),
                    "maximum" => (is > limit, "greater than the maximum of"),
                    "exclusiveMinimum" => (is < limit || (is == limit && is_exact(is)), "not greater than"),
                    "exclusiveMaximum" => (is > limit || (is == limit && is_exact(is)), "not less than"),
                    _ => return true,
                };
                !is_beyond || self.misfit(Vec::new(), || format!("{number} is {text} {bound_number}"))
            }
            ("minLength" | "maxLength", Value::Number(bound), Value::String(text)) => {
                !self.take(text.len() / BYTES)
                    || self.is_within(keyword, bound, text.chars().count(), value, "characters")
            }
            ("minItems" | "maxItems", Value::Number(bound), Value::Array(items)) => {
                self.is_within(keyword, bound, items.len(), value, "items")
            }
            ("minProperties" | "maxProperties", Value::Number(bound), Value::Object(members)) => {
                self.is_within(keyword, bound, members.len(), value, "properties")
            }
            ("required", Value::Array(names), Value::Object(members)) => self.all(names, |all, name| {
                let word = name.as_str().unwrap_or_default();
                !all.take(word.len() / BYTES)
                    || !name.is_string()
                    || members.contains_key(word)
                    || all.misfit(Vec::new(), || format!("{} is a required property", shown(name)))
            }),
            ("properties", Value::Object(schemas), Value::Object(members)) => {
                self.members(members, |name| schemas.get(name), levels)
            }
            ("additionalProperties", node, Value::Object(members)) => {
                let has = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
                if has("patternProperties").is_some() {
                    return true;
                }
                let known = has("properties");
                let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
                if *node != Value::Bool(false) {
                    return self.members(members, |name| (!is_known(name)).then_some(node), levels);
                }
                self.all(members.keys(), |all, name| {
                    let text = || format!("the property {} is not allowed", shown(&(&**name).into()));
                    !all.take(name.len() / BYTES) || is_known(name) || all.misfit(Vec::new(), text)
                })
            }
            // In a tuple, they are those of the other items.
            ("items", node, Value::Array(items)) if !schema.contains_key("prefixItems") => self
                .all(items.iter().enumerate(), |all, (at, value)| {
                    all.fits_at(Step::Item(at), node, value, levels)
                }),
            ("allOf", Value::Array(schemas), value) => {
                self.all(schemas, |all, node| all.fits(node, value, levels))
            }
            ("anyOf" | "oneOf", Value::Array(schemas), value) => {
                let found = self.found.take();
                let fits = schemas.iter().any(|node| self.fits(node, value, levels));
                self.found = found;
                if fits {
                    return true;
                }
                // Of several, none is meant for sure, unless all but one is `null`.
                let noted = self.found.as_ref().map(Vec::len);
                if let ([one], Some(_)) = (others_than_null(schemas).as_slice(), noted) {
                    self.fits(one, value, levels);
                    // Without a step left, nothing is noted.
                    if self.found.as_ref().map(Vec::len) > noted {
                        return false;
                    }
                }
                let types: Vec<_> =
                    schemas.iter().filter_map(|one| one.get("type")).flat_map(names).collect();
                self.misfit(Vec::new(), || {
                    let text = format!("{} fits none of the schemas in `{keyword}`", shown(value));
                    if types.is_empty() { text } else { format!("{text}, of {}", types_text(&types)) }
                })
            }
            _ => true,
        }
    }

    fn members(
        &mut self,
        members: &'v Map<String, Value>,
        schema_of: impl Fn(&str) -> Option<&'a Value>,
        levels: usize,
    ) -> bool {
        self.all(members, |all, (name, value)| {
            let schema = all.take(name.len() / BYTES).then(|| schema_of(name)).flatten();
            schema.is_none_or(|schema| all.fits_at(Step::Member(name), schema, value, levels))
        })
    }

    fn fits_at(&mut self, step: Step<'v>, schema: &'a Value, value: &'v Value, levels: usize) -> bool {
        self.place.push(step);
        let fits = self.fits(schema, value, levels);
        self.place.pop();
        fits
    }

    /// Checks a number of parts.
    fn is_within(&mut self, keyword: &str, bound: &Number, count: usize, value: &Value, parts: &str) -> bool {
        let (count, bound) = (count as f64, float(bound));
        let (is_beyond, word) = match keyword.starts_with("min") {
            true => (count < bound, "fewer"),
            false => (count > bound, "more"),
        };
        !is_beyond || self.misfit(Vec::new(), || format!("{} has {word} than {bound} {parts}", shown(value)))
    }

    /// Checks whether two values are equal, in JSON Schema's way: 1.0 is 1.
    fn same(&mut self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            _ if !self.take(1) => true,
            (Value::Number(one), Value::Number(other)) => one == other || float(one) == float(other),
            (Value::String(one), Value::String(other)) => !self.take(one.len() / BYTES) || one == other,
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.same(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                one.len() == other.len()
                    && one.iter().all(|(name, one)| {
                        !self.take(name.len() / 4)
                            || other.get(name).is_some_and(|other| self.same(one, other))
                    })
            }
            _ => one == other,
        }
    }
}

/// Returns the JSON pointer in a reference; `None` if it has none.
fn place_of(to: &str) -> Option<Cow<'_, str>> {
    let pointer = to.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))?;
    Some(percent_decode_str(pointer).decode_utf8_lossy())
}

/// Returns the value within another that a part of a JSON pointer names.
fn within<'a>(node: &'a Value, name: &str) -> Option<&'a Value> {
    let name = name.replace("~1", "/").replace("~0", "~");
    match node {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        node => node.get(&name),
    }
}

/// Returns the alternatives that allow more than `null`.
fn others_than_null(schemas: &[Value]) -> Vec<&Value> {
    let is_for_null = |one: &&Value| {
        one.get("type").is_some_and(|types| names(types).eq(["null"]))
            || one.get("const").is_some_and(Value::is_null)
            || one.get("enum").and_then(Value::as_array).is_some_and(|allowed| *allowed == [Value::Null])
    };
    schemas.iter().filter(|one| !is_for_null(one)).collect()
}

/// Returns the names of types; none if one of them is not known.
fn names(types: &Value) -> impl Iterator<Item = &str> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let all = match types {
        Value::Array(types) => types.as_slice(),
        one => std::slice::from_ref(one),
    };
    // Each is named once.
    let are_known = all.len() <= TYPES.len()
        && all.iter().all(|name| name.as_str().is_some_and(|name| TYPES.contains(&name)));
    all.iter().filter(move |_| are_known).filter_map(Value::as_str)
}

fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && float(number).fract() == 0.0),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Returns a number, rounded. So one is never beyond another that it is not beyond.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Checks whether no other integer is rounded to this number.
fn is_exact(number: f64) -> bool {
    number.abs() < (1_u64 << 53) as f64
}

fn types_text(types: &[&str]) -> String {
    let names: Vec<_> = types.iter().take(20).map(|name| format!("\"{name}\"")).collect();
    format!("{} {}", if names.len() == 1 { "type" } else { "types" }, names.join(", "))
}

fn listed(values: &[Value]) -> String {
    let few = values.iter().take(20).map(shown).collect::<Vec<_>>().join(", ");
    if values.len() > 20 { few + ", …" } else { few }
}

/// Returns a value as JSON, or its beginning if it is long.
fn shown(value: &Value) -> String {
    let mut beginning = Beginning(Vec::new());
    // It fails when there is enough.
    let _ = serde_json::to_writer(&mut beginning, value);
    shortened(String::from_utf8_lossy(&beginning.0).into_owned())
}

/// The beginning of a text: a little more than is shown.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character that is cut is behind what is shown.
        let room = (MOST_SHOWN + char::MAX.len_utf8()).saturating_sub(self.0.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn shortened(mut text: String) -> String {
    if text.len() > MOST_SHOWN {
        text.truncate(text.floor_char_boundary(MOST_SHOWN));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANY: usize = 1 << 20;

    /// Returns the first misfit, with its place.
    fn wrong(schema: &Value, value: &Value) -> Option<String> {
        let (wrong, is_whole) = misfits(schema, value, MANY);
        assert!(is_whole, "few steps");
        wrong.first().map(|wrong| format!("{}: {}", wrong.place, wrong.text))
    }

    #[test]
    fn misfits_have_a_place_and_a_reason() {
        for (schema, value, expected) in [
            (json!({"type": "string"}), json!(5), r#": 5 is not of type "string""#),
            (json!({"type": ["null", "integer"]}), json!(1.5), r#": 1.5 is not of types "null", "integer""#),
            (json!({"enum": ["a", 1]}), json!("b"), r#": "b" is not one of "a", 1"#),
            (json!({"const": {"a": [1]}}), json!({"a": [2]}), r#": {"a":[2]} is not {"a":[1]}"#),
            (json!({"minimum": 2}), json!(1), ": 1 is less than the minimum of 2"),
            (json!({"maximum": 2}), json!(2.5), ": 2.5 is greater than the maximum of 2"),
            (json!({"exclusiveMinimum": 2}), json!(2), ": 2 is not greater than 2"),
            (json!({"exclusiveMaximum": 2}), json!(3), ": 3 is not less than 2"),
            (json!({"minLength": 2}), json!("é"), r#": "é" has fewer than 2 characters"#),
            (json!({"maxItems": 1}), json!([1, 2]), ": [1,2] has more than 1 items"),
            (json!({"minProperties": 1}), json!({}), ": {} has fewer than 1 properties"),
            (json!({"required": ["a"]}), json!({}), r#": "a" is a required property"#),
            (json!({"properties": {"a/b~": false}}), json!({"a/b~": 1}), "/a~1b~0: 1 is not allowed"),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"a": 1, "b": 2}),
                r#": the property "b" is not allowed"#,
            ),
            (
                json!({"additionalProperties": {"type": "null"}}),
                json!({"a": 1}),
                r#"/a: 1 is not of type "null""#,
            ),
            (json!({"items": {"type": "null"}}), json!([null, 1]), r#"/1: 1 is not of type "null""#),
            (json!({"allOf": [{}, {"type": "null"}]}), json!(1), r#": 1 is not of type "null""#),
            (
                json!({"anyOf": [{"type": "boolean"}, {"minimum": 2}]}),
                json!(1),
                ": 1 fits none of the schemas in `anyOf`, of type \"boolean\"",
            ),
            (
                json!({"anyOf": [{"type": ["integer", "number"]}, {"type": "null"}, {"type": "boolean"}]}),
                json!("3"),
                r#": "3" fits none of the schemas in `anyOf`, of types "integer", "number", "null", "boolean""#,
            ),
            // Of an optional value, the misfit is that of the value.
            (
                json!({"anyOf": [{"type": "null"}, {"minimum": 2}]}),
                json!(1),
                ": 1 is less than the minimum of 2",
            ),
            (
                json!({"oneOf": [{"$ref": "#/$defs/A"}, {"const": null}], "$defs": {"A": {"properties": {"a": {"type": "null"}}}}}),
                json!({"a": 1}),
                r#"/a: 1 is not of type "null""#,
            ),
            (
                json!({"anyOf": [{"enum": [null]}, {"type": ["null"]}, {"type": "string", "minLength": 3}]}),
                json!("12"),
                r#": "12" has fewer than 3 characters"#,
            ),
            (
                json!({"$ref": "#/$defs/A%3CB~1C%3E", "$defs": {"A<B/C>": {"type": "null"}}}),
                json!(1),
                r#": 1 is not of type "null""#,
            ),
            (
                json!({"type": "array", "items": {"$ref": "#"}}),
                json!([[1]]),
                r#"/0/0: 1 is not of type "array""#,
            ),
        ] {
            assert_eq!(wrong(&schema, &value).as_deref(), Some(expected), "{schema}");
        }
        let long = wrong(&json!({"type": "null"}), &json!("é".repeat(1000))).unwrap();
        assert!(long.len() < 300 && long.contains("é…"), "{long}");
    }

    #[test]
    fn what_is_not_known_refuses_nothing() {
        const DRAFT_07: &str = "http://json-schema.org/draft-07/schema#";
        for (schema, value) in [
            (json!({"not": {"type": "integer"}}), json!(1)),
            (json!({"oneOf": [{"type": "integer"}, {"minimum": 0}]}), json!(1)),
            (json!({"if": {}, "then": false}), json!(1)),
            (json!({"pattern": "^a", "format": "uuid", "contentMediaType": "application/json"}), json!("{")),
            (json!({"patternProperties": {"^a": {}}, "additionalProperties": false}), json!({"ab": 1})),
            (json!({"type": "any"}), json!(1)),
            (json!({"type": ["string", {"type": "integer"}]}), json!(1)),
            (json!({"required": true, "exclusiveMinimum": true, "minimum": 1}), json!(1)),
            (json!({"exclusiveMinimum": 9_007_199_254_740_992_u64}), json!(9_007_199_254_740_993_u64)),
            (json!({"enum": [1], "const": 1.0}), json!(1.0)),
            // Other drafts.
            (json!({"$schema": DRAFT_07, "prefixItems": [false]}), json!([1])),
            (json!({"prefixItems": [{}], "items": false}), json!([1])),
            (json!({"items": [{}, {"type": "null"}]}), json!([1, 1])),
            (json!({"items": {"$schema": DRAFT_07, "$ref": "#", "type": "null"}}), json!([1])),
            (json!({"$ref": "#/$defs%2Fa", "$defs": {"a": {}}, "$defs/a": false}), json!(1)),
            (
                json!({"$ref": "#/$defs/b/items", "$defs": {"c": {}, "b": {"$schema": DRAFT_07, "items": {"$ref": "#/$defs/c", "maxLength": 1}}}}),
                json!("ab"),
            ),
            // A reference to another document, an anchor, nothing.
            (json!({"$ref": "http://x/#/$defs/a", "$defs": {"a": false}}), json!(1)),
            (json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a", "not": {}}}}), json!(1)),
            (json!({"$ref": "#/$defs/b"}), json!(1)),
            // What older drafts ignore.
            (
                json!({"$schema": DRAFT_07, "$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {}}}),
                json!("ab"),
            ),
            // References that are relative to another address.
            (
                json!({"$defs": {"a": false, "b": {"$id": "http://x/b", "$defs": {"a": {}}, "items": {"$ref": "#/$defs/a"}}},
                    "properties": {"p": {"$ref": "#/$defs/b"}, "q": {"$ref": "#/$defs/b/items"}}}),
                json!({"p": [1], "q": 1}),
            ),
        ] {
            assert_eq!(wrong(&schema, &value), None, "{schema}");
        }
    }

    #[test]
    fn references_to_nothing_are_found() {
        for (schema, lost) in [
            (json!({"items": {"$ref": "#/$defs/a"}}), Some("#/$defs/a")),
            (json!({"properties": {"a": {"anyOf": [{"$ref": "http://x/"}]}}}), Some("http://x/")),
            (
                json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "http://x/"}),
                Some("http://x/"),
            ),
            (json!({"items": {"$ref": "#/$defs/a%20b/0"}, "$defs": {"a b": [{}]}}), None),
            (json!({"properties": {"default": {"$ref": "#/a"}, "$ref": {"type": "string"}}}), Some("#/a")),
            (json!({"$defs": {"x-a": {"$ref": "#gone"}}}), Some("#gone")),
            (json!({"items": {"$ref": "gone.json"}}), Some("gone.json")),
            (json!({"items": {"$ref": "#a"}, "$defs": {"b": {"$anchor": "a"}}}), None),
            (json!({"$id": "http://x/", "items": {"$ref": "http://x/"}}), None),
            (json!({"$id": "http://x/t#", "a": {"$ref": "http://x/t"}, "b": {"$ref": "t#/b"}}), None),
            (json!({"$id": "http://x/t", "items": {"$ref": "./t#/$defs/a"}}), None),
            (json!({"id": "#a", "items": {"$ref": "#a"}}), None),
            (json!({"$id": "http://x/t", "properties": {"a": {"$ref": "#gone"}}}), Some("#gone")),
            (json!({"$id": "http://x/t", "properties": {"a": {"$ref": "gone.json"}}}), Some("gone.json")),
            (json!({"$ref": "#a", "$defs": {"b": {"$schema": "draft", "items": {"$anchor": "a"}}}}), None),
            (json!({"items": {"$ref": "http://x/a"}, "$defs": {"a": {"id": "http://x/a"}}}), None),
            (json!({"$ref": "#", "items": {"$ref": ""}, "example": {"$ref": "#/x"}}), None),
            (
                json!({"$defs": {"a": {"$id": "http://x/a", "$defs": {"b": {}}, "items": {"$ref": "#/$defs/b"}}}}),
                None,
            ),
            (
                json!({"default": {"$ref": "#/a"}, "x-ui": {"$ref": "#/a"}, "properties": {"$ref": {"type": "string"}}}),
                None,
            ),
        ] {
            assert_eq!(lost_reference(&schema), lost, "{schema}");
        }
    }

    /// Places that lead to one another in two ways each.
    fn doubled(way: impl Fn(String) -> Value) -> Value {
        let to = |at: u32| way(format!("#/$defs/{at}"));
        let defs: Map<_, _> =
            (0..40).map(|at| (at.to_string(), json!({"allOf": [to(at + 1), to(at + 1)]}))).collect();
        json!({"$defs": defs, "$ref": "#/$defs/0"})
    }

    #[test]
    fn law_r1_comparisons_take_few_steps() {
        let nested = |levels: usize| (0..levels).fold(json!("a"), |inner, _| json!({"a": [inner]}));
        let below = |to: String| json!({"properties": {"a": {"items": {"$ref": to}}}});
        let values: Vec<_> = (0..2_000).collect();
        for (what, schema, arguments) in [
            ("each way", doubled(|to| json!({"$ref": to})), json!("a")),
            ("each way down", doubled(below), nested(60)),
            ("values", json!({"items": {"enum": values}}), json!(vec![-1; 2_000])),
            ("names", json!({"items": {"required": vec!["a"; 2_000]}}), json!(vec![json!({"a": 1}); 2_000])),
        ] {
            let (found, is_whole) = misfits(&schema, &arguments, MANY);
            assert!(!is_whole, "{what}: {found:?}");
        }
        let name = "a".repeat(200_000);
        let (_, is_whole) = misfits(&json!({"enum": [{&*name: 1}]}), &json!({&*name: 1}), 4_096);
        assert!(!is_whole, "a long name of a value");
        for circle in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
            assert_eq!(wrong(&circle, &json!(1)), None);
        }
        // In a thread with the stack of one that checks arguments.
        for levels in [1, 55] {
            let circle = json!({"$ref": "#/properties/a"});
            let circle = (0..levels).fold(circle, |inner, _| json!({"allOf": [inner]}));
            let check = move || wrong(&json!({"properties": {"a": circle}}), &json!({"a": 1}));
            let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap();
            assert_eq!(thread.join().unwrap(), None);
        }
    }

    #[test]
    fn law_r1_comparisons_end_with_their_steps() {
        let mut comparison = Comparison::new(&Value::Null, 5);
        let mut looks = 0;
        let fits = comparison.all(0..1_000, |_, _| {
            looks += 1;
            true
        });
        assert_eq!((fits, looks), (true, 5));
    }

    #[test]
    fn law_r1_misfits_are_few() {
        let long = "a".repeat(10_000);
        let many = |name: &str| json!({name: vec![1; 10_000]});
        let found = |value| misfits(&json!({"additionalProperties": {"items": false}}), &value, MANY).0.len();
        assert_eq!((found(many("a")), found(many(&long))), (MOST, 1));
    }

    #[cfg(feature = "schema-validation")]
    mod beside_whole_schemas {
        use std::collections::HashMap;

        use proptest::collection::{hash_map, vec};
        use proptest::prelude::*;

        use super::*;

        fn any_value() -> impl Strategy<Value = Value> {
            let leaf = prop_oneof![
                Just(json!(null)),
                Just(json!(true)),
                (-2..4).prop_map(Value::from),
                Just(json!(1.5)),
                Just(json!("a")),
                Just(json!("abc"))
            ];
            leaf.prop_recursive(3, 12, 3, |inner| {
                prop_oneof![
                    vec(inner.clone(), 0..3).prop_map(Value::from),
                    hash_map("[ab]", inner, 0..3).prop_map(|members| json!(members)),
                ]
            })
        }

        fn any_schema() -> impl Strategy<Value = Value> {
            let types = prop_oneof![
                Just(json!("integer")),
                Just(json!("object")),
                Just(json!(["string", "null"])),
                Just(json!(["array", "number"])),
                Just(json!("boolean"))
            ];
            let leaf = prop_oneof![
                Just(json!(true)),
                types.prop_map(|types| json!({"type": types})),
                any_value().prop_map(|value| json!({"const": value})),
                vec(any_value(), 1..3).prop_map(|values| json!({"enum": values})),
                (0..3, 0..3).prop_map(|(least, most)| json!({
                    "minimum": least, "exclusiveMaximum": most + 2, "minItems": least, "maxLength": most, "maxProperties": most
                })),
                Just(json!({"required": ["a"], "pattern": "^a", "dependentRequired": {"a": ["b"]}})),
                Just(json!({"$ref": "#/$defs/x"})),
            ];
            leaf.prop_recursive(4, 16, 3, |inner| {
                let keyword = prop_oneof![
                    Just("items"),
                    Just("additionalProperties"),
                    Just("not"),
                    Just("contains"),
                    Just("if"),
                    Just("then"),
                    Just("propertyNames")
                ];
                let list = prop_oneof![Just("allOf"), Just("anyOf"), Just("oneOf"), Just("prefixItems")];
                let named =
                    prop_oneof![Just("properties"), Just("patternProperties"), Just("dependentSchemas")];
                let part = prop_oneof![
                    (keyword, inner.clone()).prop_map(|(keyword, schema)| (keyword, schema)),
                    (list, vec(inner.clone(), 1..3)).prop_map(|(keyword, schemas)| (keyword, json!(schemas))),
                    (named, hash_map("[ab]", inner, 1..3))
                        .prop_map(|(keyword, schemas)| (keyword, json!(schemas))),
                ];
                vec(part, 1..4).prop_map(|parts| json!(parts.into_iter().collect::<HashMap<_, _>>()))
            })
        }

        proptest! {
            /// Whatever fits a schema as a whole fits its structure.
            #[test]
            fn structure_refuses_nothing_that_fits(schema in any_schema(), x in any_schema(), value in any_value()) {
                let x: Value = serde_json::from_str(&x.to_string().replace("#/$defs/x", "#/$defs/y")).unwrap();
                let whole = json!({"allOf": [schema], "$defs": {"x": x, "y": {"type": "integer"}}});
                if jsonschema::is_valid(&whole, &value) {
                    prop_assert_eq!(wrong(&whole, &value), None, "{} {}", whole, value);
                }
            }
        }
    }
}
