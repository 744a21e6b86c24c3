//! `Metered`: arguments as the validator reads them, with a bound on the work of a comparison.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::{ptr, slice};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value, map};

use crate::plan::subschemas::work_in;

/// The bytes of a text that a check reads in one unit of work, unless it compares them with an expression. The unit is one
/// look at a value, or the comparison of one byte with a small expression.
const BYTES_READ: usize = 64;

/// The work of keeping a violation, and of a part of what it keeps.
const KEPT: usize = 4 << 10;
const KEPT_PART: usize = 16;

/// The pairs of items that are compared in one unit of work, if their hashes are equal.
const PAIRS: usize = 256;

/// The bytes of the stack that a comparison may take. It is recursive.
const MOST_STACK: usize = 512 << 10;

/// The work of parts of a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weights {
    /// Comparing a byte of a text with the largest expression.
    pub(super) text: usize,
    /// Comparing a byte of a name with all expressions for names of one schema.
    pub(super) name: usize,
    /// What a violation may keep beside its value: a part of the schema, and the places.
    pub(super) kept: usize,
}

/// The work that is left to the comparison of this thread. Without any, no schema has a value: the validator compares it
/// [with the work of a schema](work_in) before anything else, and comes to an end.
#[derive(Debug, Clone, Copy)]
struct Meter {
    left: Option<usize>,
    /// Whether the end of the work unwinds, for a comparison that goes on after a violation.
    unwinds: bool,
    weights: Weights,
    /// The place on the stack where the comparison began.
    from: usize,
}

thread_local! {
    // The validator makes a value of a name without any other one, so that values cannot refer to their meter.
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// Compares, and returns the result; `None` if that takes more work than this. The result would mean nothing then.
pub(super) fn within<T>(work: usize, weights: Weights, compare: impl FnOnce() -> T) -> Option<T> {
    METER.set(Some(Meter { left: Some(work), unwinds: false, weights, from: place_on_stack() }));
    let result = compare();
    METER.take()?.left.map(|_| result)
}

/// As [`within`], for a comparison that goes on after a violation. Where a panic aborts, the end of the work does not end it:
/// only a schema that is trusted may be compared so.
pub(super) fn all_within<T>(work: usize, weights: Weights, compare: impl FnOnce() -> T) -> Option<T> {
    let unwinds = cfg!(panic = "unwind");
    METER.set(Some(Meter { left: Some(work), unwinds, weights, from: place_on_stack() }));
    let result = panic::catch_unwind(AssertUnwindSafe(compare));
    let is_left = METER.take().is_some_and(|meter| meter.left.is_some());
    match result {
        Ok(result) => Some(result).filter(|_| is_left),
        Err(_) if !is_left => None,
        Err(other) => panic::resume_unwind(other),
    }
}

/// Takes some work. Returns whether there was so much.
fn take(work: impl FnOnce(&Weights) -> usize) -> bool {
    let Some(mut meter) = METER.get() else { return true };
    let Some(left) = meter.left else { return false };
    let is_deep = place_on_stack().abs_diff(meter.from) > MOST_STACK;
    meter.left = left.checked_sub(work(&meter.weights)).filter(|_| !is_deep);
    METER.set(Some(meter));
    if meter.left.is_none() && meter.unwinds {
        // No hook reports it, and `all_within` catches it.
        panic::resume_unwind(Box::new(()));
    }
    meter.left.is_some()
}

/// Takes the work of looking at a value, with these bytes of a text.
fn look(bytes: usize) -> bool {
    take(|_| 1 + bytes / BYTES_READ)
}

#[inline(never)]
fn place_on_stack() -> usize {
    let here = 0_u8;
    ptr::from_ref(&here).addr()
}

/// The representation of values that are read within [the work that is left](within).
pub(super) struct MeteredJson;

/// A value that is read so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metered<'a>(pub(super) &'a Value);

impl<'a> Metered<'a> {
    /// Returns the value after taking some work; `null` if there is not so much.
    fn read(self, work: impl FnOnce(&Weights) -> usize) -> &'a Value {
        if take(work) { self.0 } else { &Value::Null }
    }

    fn looked_at(self) -> &'a Value {
        if look(0) { self.0 } else { &Value::Null }
    }
}

/// Returns the work of reading a value whole.
pub(super) fn length(value: &Value) -> usize {
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

/// Returns the most levels of a value, and the work of reading the names on the way to a part of it.
pub(super) fn longest_place(value: &Value) -> (usize, usize) {
    let deeper = |(levels, names): (usize, usize), (own, inner): (usize, (usize, usize))| {
        (levels.max(inner.0 + 1), names.max(inner.1 + own))
    };
    match value {
        Value::Array(items) => items.iter().map(|item| (1, longest_place(item))).fold((1, 1), deeper),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (1 + name.len() / BYTES_READ, longest_place(value)))
            .fold((1, 1), deeper),
        _ => (1, 1),
    }
}

impl Json for MeteredJson {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Metered<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(Metered(value)))
    }
}

impl<'a> Node<'a, MeteredJson> for Metered<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        self.looked_at().as_object().map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        self.looked_at().as_array().map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let bytes = self.0.as_str().map_or(0, str::len);
        let is_left = look(bytes) && take(|weights| weights.text.saturating_mul(bytes + 1));
        self.0.as_str().filter(|_| is_left).map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.looked_at().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.looked_at().as_bool()
    }

    fn is_null(&self) -> bool {
        self.looked_at().is_null()
    }

    fn json_type(&self) -> JsonType {
        Node::<SerdeJson>::json_type(&self.looked_at())
    }

    fn string_length(&self) -> Option<u64> {
        Node::<SerdeJson>::string_length(&self.read(|_| length(self.0)))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match work_in(expected) {
            Some(work) => take(|_| work),
            None => take(|_| length(expected)) && Node::<SerdeJson>::equals_value(&self.0, expected),
        }
    }

    /// A violation has the value, and may copy it.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.read(|weights| {
            KEPT.saturating_add(KEPT_PART.saturating_mul(length(self.0).saturating_add(weights.kept)))
        }))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.0)
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, MeteredJson> for Members<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        look(key.len()).then(|| self.0.get(key).map(Metered)).flatten()
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

/// Iterates over the members of an object. Without work left, there are no more.
#[derive(Debug)]
pub(super) struct MembersIter<'a>(map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        let is_left = look(name.len()) && take(|weights| weights.name.saturating_mul(name.len() + 1));
        is_left.then_some((name.as_str(), Metered(value)))
    }
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a>(&'a [Value]);

impl<'a> Array<'a, MeteredJson> for Items<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter(self.0.iter())
    }

    /// Items whose hashes are equal are compared with one another.
    fn is_unique(&self) -> bool {
        let all: usize = self.0.iter().map(length).sum();
        take(|_| all.saturating_add(all.saturating_mul(self.0.len()) / PAIRS))
            && Array::<SerdeJson>::is_unique(&self.0)
    }
}

/// Iterates over the items of a list. Without work left, there are no more.
#[derive(Debug)]
pub(super) struct ItemsIter<'a>(slice::Iter<'a, Value>);

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Metered<'a>> {
        let value = self.0.next()?;
        look(0).then_some(Metered(value))
    }
}
