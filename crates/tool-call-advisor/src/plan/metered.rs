//! `Metered`: arguments as the validator reads them, with a bound on the work of a comparison.

use std::borrow::Cow;
use std::cell::Cell;
use std::ptr;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

/// The bytes of a text that a check reads in one unit of work, unless it compares them with an expression. The unit is one
/// look at a value, or the comparison of one byte with a small expression.
const BYTES_READ: usize = 64;

/// The schemas of a document that a look at a part of a value stands for.
const SCHEMAS_VISITED: usize = 64;

/// The work of keeping a violation or a part of its value, which counts as much as the memory of it.
const KEPT: usize = 64;

/// The bytes of the stack that a comparison may take. It is recursive.
const MOST_STACK: usize = 512 << 10;

/// The work of parts of a comparison with a certain schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weights {
    /// Comparing a byte of a text with the largest expression.
    pub(super) text: usize,
    /// Comparing a byte of a name with all expressions for names of one schema.
    pub(super) name: usize,
    /// The number of schemas.
    pub(super) schemas: usize,
}

/// The work that is left to a comparison. Without any, the validator sees values without parts, and comes to an end.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<Option<usize>>,
    weights: Weights,
    /// The place on the stack where the comparison began.
    from: usize,
}

impl Meter {
    pub(super) fn new(work: usize, weights: Weights) -> Self {
        Self { left: Cell::new(Some(work)), weights, from: place_on_stack() }
    }

    /// Returns the result of a comparison; `None` if it took more work than there was. The result means nothing then.
    pub(super) fn completed<T>(&self, result: T) -> Option<T> {
        self.left.get().map(|_| result)
    }

    /// Takes some work. Returns whether there was so much.
    fn take(&self, work: usize) -> bool {
        let is_deep = place_on_stack().abs_diff(self.from) > MOST_STACK;
        self.left.set(self.left.get().and_then(|left| left.checked_sub(work)).filter(|_| !is_deep));
        self.left.get().is_some()
    }

    fn take_part(&self) -> bool {
        self.take(1 + self.weights.schemas / SCHEMAS_VISITED)
    }

    fn take_name(&self, name: &str) -> bool {
        self.take_part()
            && self.take(name.len() / BYTES_READ + self.weights.name.saturating_mul(name.len() + 1))
    }
}

#[inline(never)]
fn place_on_stack() -> usize {
    let here = 0_u8;
    ptr::from_ref(&here).addr()
}

/// The representation of values that are read with a [`Meter`].
pub(super) struct MeteredJson;

/// A value that is read with a meter. The name of a member has none: the one of its object has counted it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metered<'a> {
    value: &'a Value,
    meter: Option<&'a Meter>,
}

impl<'a> Metered<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a Meter) -> Self {
        Self { value, meter: Some(meter) }
    }

    /// Returns the value after taking some work; `null` if there is not so much.
    fn read(&self, work: impl FnOnce(&Meter) -> usize) -> &'a Value {
        let is_left = self.meter.is_none_or(|meter| meter.take(work(meter)));
        if is_left { self.value } else { &Value::Null }
    }

    fn looked_at(&self) -> &'a Value {
        self.read(|_| 1)
    }

    fn length(&self) -> usize {
        length(self.value)
    }
}

/// Returns the work of reading a value whole.
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

impl Json for MeteredJson {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Metered<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(Metered { value, meter: None }))
    }
}

impl<'a> Node<'a, MeteredJson> for Metered<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        let members = self.looked_at().as_object()?;
        Some(Members { members, meter: self.meter })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        let items = self.looked_at().as_array()?;
        Some(Items { items, meter: self.meter })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let bytes = self.value.as_str().map_or(0, str::len);
        let work = |meter: &Meter| {
            meter.weights.text.saturating_mul(bytes + 1).saturating_add(1 + bytes / BYTES_READ)
        };
        self.read(work).as_str().map(Cow::Borrowed)
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
        Node::<SerdeJson>::string_length(&self.read(|_| self.length()))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        Node::<SerdeJson>::equals_value(&self.read(|_| length(expected)), expected)
    }

    /// A violation has the value, and may copy it.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.read(|_| KEPT.saturating_mul(KEPT + self.length())))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.value)
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members<'a> {
    members: &'a Map<String, Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Object<'a, MeteredJson> for Members<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        let is_left = self.meter.is_none_or(Meter::take_part);
        let value = self.members.get(key).filter(|_| is_left)?;
        Some(Metered { value, meter: self.meter })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { members: self.members.iter(), meter: self.meter }
    }
}

/// Iterates over the members of an object. Without work left, there are no more.
#[derive(Debug)]
pub(super) struct MembersIter<'a> {
    members: serde_json::map::Iter<'a>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let is_left = self.meter.is_none_or(|meter| meter.take_name(name));
        is_left.then_some((name.as_str(), Metered { value, meter: self.meter }))
    }
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a> {
    items: &'a [Value],
    meter: Option<&'a Meter>,
}

impl<'a> Array<'a, MeteredJson> for Items<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { items: self.items.iter(), meter: self.meter }
    }

    fn is_unique(&self) -> bool {
        let is_left = self.meter.is_none_or(|meter| meter.take(self.items.iter().map(length).sum()));
        is_left && Array::<SerdeJson>::is_unique(&self.items)
    }
}

/// Iterates over the items of a list. Without work left, there are no more.
#[derive(Debug)]
pub(super) struct ItemsIter<'a> {
    items: std::slice::Iter<'a, Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Metered<'a>> {
        let value = self.items.next()?;
        let is_left = self.meter.is_none_or(Meter::take_part);
        is_left.then_some(Metered { value, meter: self.meter })
    }
}
