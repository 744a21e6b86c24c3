//! `is_bounded`: the size and the depth of a server's schema, with that of its references.

use std::collections::HashMap;
use std::ptr;

use serde_json::Value;

/// The bytes that a schema may have.
const MOST_BYTES: usize = 256 << 10;

/// The levels of a schema, with those that its references lead to. Their check is recursive.
const MOST_LEVELS: usize = 128;

/// References that this module cannot follow, such as to an anchor.
const MOST_UNKNOWN: usize = 8;

/// Keywords whose members are schemas, with names that are no keywords.
const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords that have data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Checks that a schema of a server can be compiled in bounded time. The tool loop bounds its regular expressions,
/// and the comparison with the arguments of a call.
pub(super) fn is_bounded(schema: &Value) -> bool {
    let mut walk = Walk { root: schema, rerooted: false, unknown: 0, levels: HashMap::new() };
    walk.rerooted = walk.has_inner_id(schema, 0);
    schema.to_string().len() <= MOST_BYTES && walk.levels(schema, 0).is_some() && walk.unknown <= MOST_UNKNOWN
}

/// The schemas that a schema leads to.
#[derive(Default)]
struct Next<'a> {
    schemas: Vec<&'a Value>,
    /// The number of references that cannot be followed.
    unknown: usize,
}

/// A walk through the schema. Each schema is measured once; `None` is one that is being measured.
struct Walk<'a> {
    root: &'a Value,
    /// Whether references may be relative to another place than the root.
    rerooted: bool,
    unknown: usize,
    levels: HashMap<*const Value, Option<usize>>,
}

impl<'a> Walk<'a> {
    /// Checks whether a schema within another one has a separate address.
    fn has_inner_id(&self, node: &Value, level: usize) -> bool {
        let inner = match node {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        let has_id = |name| node.get(name).is_some_and(Value::is_string);
        (level > 0 && (has_id("$id") || has_id("id")))
            || level > MOST_LEVELS
            || inner.into_iter().any(|inner| self.has_inner_id(inner, level + 1))
    }

    fn next(&self, node: &'a Value) -> Next<'a> {
        let mut next = Next::default();
        for (keyword, value) in node.as_object().into_iter().flatten() {
            match (keyword.as_str(), value) {
                (name, _) if DATA.contains(&name) => {}
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => match self.target(to) {
                    Some(target) => next.schemas.push(target),
                    None => next.unknown += 1,
                },
                (name, Value::Object(members)) if MAPS.contains(&name) => {
                    next.schemas.extend(members.values())
                }
                (_, Value::Array(items)) => next.schemas.extend(items),
                (_, Value::Object(_)) => next.schemas.push(value),
                _ => {}
            }
        }
        next
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        if self.rerooted || pointer.contains('%') { None } else { self.root.pointer(pointer) }
    }

    /// Returns the levels below a schema, or `None` if there are too many.
    fn levels(&mut self, node: &'a Value, level: usize) -> Option<usize> {
        if let Some(known) = self.levels.get(&ptr::from_ref(node)) {
            return Some(known.unwrap_or(0));
        }
        if level > MOST_LEVELS {
            return None;
        }
        self.levels.insert(node, None);
        let next = self.next(node);
        self.unknown += next.unknown;
        let mut most = 0;
        for inner in next.schemas {
            most = most.max(self.levels(inner, level + 1)? + 1);
        }
        self.levels.insert(node, Some(most));
        (most <= MOST_LEVELS).then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Definitions that each refer to the one before, and a property that refers to the last.
    fn chain(length: usize, each: impl Fn(Value) -> Value) -> Value {
        let mut definitions = Map::from_iter([("a0".to_owned(), json!({"type": "string"}))]);
        for at in 1..=length {
            definitions.insert(format!("a{at}"), each(json!({"$ref": format!("#/$defs/a{}", at - 1)})));
        }
        let last = json!({"$ref": format!("#/$defs/a{length}")});
        json!({"type": "object", "$defs": definitions, "properties": {"last": last}})
    }

    #[test]
    fn usual_schemas_are_bounded() {
        let tree = json!({"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#"}},
            "id": {"type": "string"}, "$id": {"type": "string"}, "default": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}
        }});
        assert!(is_bounded(&tree));
        assert!(is_bounded(&chain(30, |before| before)));
        assert!(is_bounded(&chain(30, |before| json!({"properties": {"a": before, "b": before}}))));
        let wide: Vec<_> = (0..500).map(|_| json!({"$ref": "#/$defs/a1"})).collect();
        assert!(is_bounded(&json!({"$defs": {"a1": {"type": "string"}}, "anyOf": wide})));
    }

    #[test]
    fn law_r1_schemas_without_a_bound_are_recognised() {
        let named = |name: &str| json!({"dependentSchemas": {name: chain(400, |before| before)}});
        assert!(!is_bounded(&named("a")) && !is_bounded(&named("const")), "in a schema of some name");
        assert!(!is_bounded(&chain(400, |before| before)), "a long chain");
        assert!(!is_bounded(&json!({"description": "x".repeat(MOST_BYTES)})), "many bytes");
        let anchors: Vec<_> = (0..9).map(|at| json!({"$ref": format!("#a{at}")})).collect();
        assert!(!is_bounded(&json!({"allOf": anchors})), "unknown references");
        let rerooted = json!({"$defs": {"inner": {"$id": "http://x", "allOf": anchors}}, "allOf": anchors});
        assert!(!is_bounded(&rerooted), "other roots");
    }
}
