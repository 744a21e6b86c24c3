//! The work of comparing arguments with a schema, counted before it begins.

use std::collections::HashMap;
use std::ptr;

use serde_json::{Map, Value};

use crate::plan::subschemas::{Document, Kind, Place};

/// The bytes of a text that a check reads in one unit of work, unless it compares them with an expression. The unit is one
/// check of a keyword, or the comparison of one byte with a small expression.
const BYTES_READ: usize = 64;

/// The checks that may be within one another. They are recursive.
const MOST_LEVELS: usize = 500;

/// The work that is found one by one, in memory. The rest is that of checks once more.
const MOST_FOUND: usize = 2 << 20;

/// The checks of each part of a value by a schema that this module cannot find, such as that of JSON Schema itself.
const UNKNOWN: usize = 1000;

/// The visits of schemas that refer to themselves from which on the validator remembers the outcome of one. It counts those
/// within as well.
const REMEMBERED_VISITS: usize = 16;

/// What a comparison is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Purpose {
    /// To know whether the arguments fit. The validator remembers which arrays and objects fit a schema that refers to
    /// itself, if it took many visits to find out.
    Fit,
    /// To list what does not fit. Each way to a schema has its own violations.
    List,
}

/// Returns the work of comparing arguments with a schema, or `None` if it is more than `most` or has no end.
///
/// It is that of the worst case: each branch is tried, and each expression for names matches each name.
pub(super) fn of(
    schema: &Value,
    sizes: &Sizes,
    arguments: &Value,
    purpose: Purpose,
    most: usize,
) -> Option<usize> {
    let document = Document::new(schema);
    let left = most.min(MOST_FOUND);
    let mut count = Count { document, sizes, purpose, left, known: HashMap::new() };
    let work = count.check(Place::of_whole(schema), Instance::Value(arguments), Around::default())?.check;
    (work <= most).then_some(work)
}

/// The sizes of regular expressions. A comparison with a text takes at most the time of its size times the bytes of the
/// text.
#[derive(Debug, Default)]
pub(super) struct Sizes(HashMap<String, usize>);

impl Sizes {
    /// The largest size, which an unknown expression has.
    pub(super) const LARGEST: usize = 64;

    pub(super) fn insert(&mut self, expression: &str, size: usize) {
        self.0.insert(expression.to_owned(), size);
    }

    fn of(&self, expression: &str) -> usize {
        self.0.get(expression).copied().unwrap_or(Self::LARGEST)
    }
}

/// The work of a schema at a value.
#[derive(Clone, Copy, Default)]
struct Work {
    check: usize,
    /// The part of it that is not behind a reference of a schema to itself.
    visit: usize,
    /// The largest such part of a schema behind one.
    largest_visit: usize,
    /// The work of finding out which parts of the value it has checked, for `unevaluatedProperties` and its like.
    evaluated: usize,
}

impl Work {
    fn of(check: usize) -> Self {
        Self { check, visit: check, ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.add_check(other);
        self.evaluated = self.evaluated.saturating_add(other.evaluated);
    }

    fn add_check(&mut self, other: Self) {
        self.check = self.check.saturating_add(other.check);
        self.visit = self.visit.saturating_add(other.visit);
        self.largest_visit = self.largest_visit.max(other.largest_visit);
    }

    /// Returns it as that of a reference of a schema to itself.
    fn behind(self) -> Self {
        Self { visit: 0, largest_visit: self.largest_visit.max(self.visit), ..self }
    }

    /// Returns the work of the same check once more, if the validator remembers it, or had few visits to make.
    fn again(self) -> Self {
        Self { check: self.check.min(self.largest_visit.saturating_mul(REMEMBERED_VISITS)), ..self }
    }
}

/// A keyword that refers to a schema, and its value. The validator knows a schema by both.
type Reference<'a> = (&'a str, &'a str);

/// What is around a check.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    level: usize,
    /// The innermost schema that a reference led to, and the reference.
    followed: Option<(*const Value, Reference<'a>)>,
}

impl Around<'_> {
    /// Returns what is around a check within it.
    fn deeper(self) -> Option<Self> {
        (self.level < MOST_LEVELS).then_some(Self { level: self.level + 1, ..self })
    }
}

/// What a schema checks.
#[derive(Clone, Copy)]
enum Instance<'a> {
    Value(&'a Value),
    /// The name of a member.
    Name(&'a str),
}

impl<'a> Instance<'a> {
    fn address(self) -> *const u8 {
        match self {
            Self::Value(value) => ptr::from_ref(value).cast(),
            Self::Name(name) => name.as_ptr(),
        }
    }

    fn has_parts(self) -> bool {
        matches!(self, Self::Value(Value::Array(_) | Value::Object(_)))
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Value(value) => value.as_str(),
            Self::Name(name) => Some(name),
        }
    }

    fn members(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Value(value) => value.as_object(),
            Self::Name(_) => None,
        }
    }

    fn items(self) -> &'a [Value] {
        match self {
            Self::Value(Value::Array(items)) => items,
            _ => &[],
        }
    }

    /// Returns the work of reading it whole.
    fn length(self) -> usize {
        match self {
            Self::Value(value) => length(value),
            Self::Name(name) => 1 + name.len() / BYTES_READ,
        }
    }
}

fn length(value: &Value) -> usize {
    let of_parts: usize = match value {
        Value::String(text) => text.len() / BYTES_READ,
        Value::Array(items) => items.iter().map(length).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() / BYTES_READ + length(value)).sum()
        }
        _ => 0,
    };
    1 + of_parts
}

/// The number of parts of a value that are next to one another.
fn width(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

/// A count of the work.
struct Count<'a> {
    document: Document<'a>,
    sizes: &'a Sizes,
    purpose: Purpose,
    /// The work that may still be found. What references repeat is not subtracted from it.
    left: usize,
    /// The work of the schemas that references lead to, each counted once for each value; `None` is one that is being
    /// counted.
    known: HashMap<(*const Value, Reference<'a>, *const u8), Option<Work>>,
}

impl<'a> Count<'a> {
    /// Returns the work of a check by a schema that a reference leads to, or `None` if it is too much or has no end.
    ///
    /// Only references of a schema to itself count as remembered: of those of several schemas to one another, the validator
    /// remembers some.
    fn follow(
        &mut self,
        reference: Reference<'a>,
        place: Place<'a>,
        instance: Instance<'a>,
        around: Around<'a>,
    ) -> Option<Work> {
        let schema = ptr::from_ref(place.node);
        let followed = Some((schema, reference));
        let is_own = self.purpose == Purpose::Fit && reference.0 == "$ref" && around.followed == followed;
        let key = (schema, reference, instance.address());
        if let Some(known) = self.known.get(&key) {
            return known.map(|work| match (is_own, instance.has_parts()) {
                (true, true) => work.behind().again(),
                (true, false) => work.behind(),
                (false, _) => work,
            });
        }
        self.known.insert(key, None);
        let work = self.check(place, instance, Around { followed, ..around })?;
        self.known.insert(key, Some(work));
        Some(if is_own { work.behind() } else { work })
    }

    /// Returns the work of a check, or `None` if it is too much or has no end.
    fn check(&mut self, place: Place<'a>, instance: Instance<'a>, around: Around<'a>) -> Option<Work> {
        let Value::Object(keywords) = place.node else { return Some(Work::of(1)) };
        let around = around.deeper()?;
        let (mut own, mut same, mut below, mut again) = (0_usize, Work::default(), Work::default(), 0_usize);
        for (keyword, value) in keywords {
            let of_same = self.of_same(place, keyword, value, instance);
            let effort = effort(self.sizes, keyword, value, instance, of_same.is_empty());
            self.left = self.left.checked_sub(effort)?;
            own = own.saturating_add(effort);
            let to = value.as_str().filter(|_| matches!(Kind::of(keyword), Kind::Reference));
            for inner in of_same {
                same.add(match to {
                    Some(to) => self.follow((keyword, to), inner, instance, around)?,
                    None => self.check(inner, instance, around)?,
                });
            }
            let is_again =
                matches!(keyword.as_str(), "contains" | "unevaluatedItems" | "unevaluatedProperties");
            for (inner, part) in parts(keywords, keyword, value, instance) {
                let work = self.check(place.at(inner), part, around)?;
                below.add_check(work);
                again = again.saturating_add(if is_again { work.check } else { 0 });
            }
        }
        let evaluated = [same.check, same.evaluated, again].into_iter().fold(own, usize::saturating_add);
        let mut work = Work { evaluated, ..Work::default() };
        for part in [Work::of(own), same, below] {
            work.add_check(part);
        }
        if keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems") {
            work.add_check(Work::of(evaluated));
        }
        Some(work)
    }

    /// Returns the schemas of a keyword that check the same value.
    fn of_same(
        &self,
        place: Place<'a>,
        keyword: &str,
        value: &'a Value,
        instance: Instance<'a>,
    ) -> Vec<Place<'a>> {
        match (keyword, value) {
            (_, Value::String(to)) if matches!(Kind::of(keyword), Kind::Reference) => {
                self.document.targets(place, keyword, to)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter().map(|schema| place.at(schema)).collect()
            }
            ("not" | "if" | "then" | "else", _) => vec![place.at(value)],
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                let is_there = |name: &str| instance.members().is_some_and(|all| all.contains_key(name));
                let there = schemas.iter().filter(|(name, _)| is_there(name));
                there.map(|(_, schema)| place.at(schema)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the work of a keyword at a value, without that of schemas within.
fn effort(sizes: &Sizes, keyword: &str, value: &Value, instance: Instance<'_>, is_alone: bool) -> usize {
    let text = instance.text().map_or(0, |text| text.len() / BYTES_READ);
    let parts = instance.items().len() + instance.members().map_or(0, Map::len);
    let more = match (keyword, value) {
        ("pattern", Value::String(expression)) => {
            let compared = instance.text().map_or(0, |text| text.len() + 1);
            sizes.of(expression).saturating_mul(compared)
        }
        ("patternProperties", Value::Object(schemas)) => {
            let names = instance.members().into_iter().flat_map(Map::keys);
            let compared: usize = names.map(|name| name.len() + 1).sum();
            let sizes = schemas.keys().map(|expression| sizes.of(expression));
            sizes.fold(0, usize::saturating_add).saturating_mul(compared)
        }
        ("const" | "uniqueItems", _) => instance.length(),
        ("enum", Value::Array(values)) => instance.length().saturating_mul(values.len()),
        (_, Value::String(_)) if is_alone && matches!(Kind::of(keyword), Kind::Reference) => {
            instance.length().saturating_mul(UNKNOWN)
        }
        _ => 0,
    };
    more.saturating_add(1 + width(value) + text + parts)
}

/// Returns the schemas of a keyword that check parts of the value, with those parts.
fn parts<'a>(
    keywords: &'a Map<String, Value>,
    keyword: &str,
    value: &'a Value,
    instance: Instance<'a>,
) -> Vec<(&'a Value, Instance<'a>)> {
    let members = || instance.members().into_iter().flatten();
    let is_named = |name: &str| keywords.get("properties").is_some_and(|all| all.get(name).is_some());
    let first = |keyword| match keywords.get(keyword) {
        Some(Value::Array(schemas)) => schemas.len(),
        _ => 0,
    };
    let rest = |skipped: usize| {
        let items = instance.items().iter().skip(skipped);
        items.map(|item| (value, Instance::Value(item))).collect()
    };
    match (keyword, value) {
        ("properties", Value::Object(schemas)) => {
            let named = |(name, schema)| Some((schema, Instance::Value(instance.members()?.get(name)?)));
            schemas.iter().filter_map(named).collect()
        }
        ("patternProperties", Value::Object(schemas)) => {
            let of = |schema| members().map(move |(_, member)| (schema, Instance::Value(member)));
            schemas.values().flat_map(of).collect()
        }
        ("additionalProperties" | "unevaluatedProperties", _) => {
            let others = members().filter(|(name, _)| !is_named(name));
            others.map(|(_, member)| (value, Instance::Value(member))).collect()
        }
        ("propertyNames", _) => members().map(|(name, _)| (value, Instance::Name(name))).collect(),
        ("items" | "prefixItems", Value::Array(schemas)) => {
            let items = instance.items().iter().map(Instance::Value);
            schemas.iter().zip(items).collect()
        }
        ("items", _) => rest(first("prefixItems")),
        ("additionalItems", _) => rest(first("items")),
        ("contains" | "unevaluatedItems", _) => rest(0),
        _ => Vec::new(),
    }
}
