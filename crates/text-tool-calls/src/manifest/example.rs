//! Example arguments for a schema.

use serde_json::{Map, Value, json};

use crate::tools::coercion::Schema;

/// The depth of an example.
const MAX_DEPTH: usize = 4;

/// Which members of an object an example has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Members {
    Required,
    All,
}

/// Returns example arguments for this schema, of about `most` bytes. Deeper ones are empty beyond: schemas that refer to one
/// another may have any number of members.
pub(super) fn arguments(parameters: &Value, members: Members, most: usize) -> Value {
    let mut example = Example { members, left: most };
    example.object(Schema::new(parameters), MAX_DEPTH)
}

/// An example that is made.
struct Example {
    members: Members,
    /// The bytes that it may still have.
    left: usize,
}

impl Example {
    fn object(&mut self, schema: Schema<'_>, depth: usize) -> Value {
        let required = schema.required();
        let names = schema.property_names().into_iter();
        let names = names.filter(|name| self.members == Members::All || required.contains(name));
        let names: Vec<_> = names.collect();
        let members = names.into_iter().map(|name| {
            let value = self.value(&name, schema.property(&name), depth);
            (name, value)
        });
        members.collect::<Map<_, _>>().into()
    }

    fn value(&mut self, name: &str, schema: Schema<'_>, depth: usize) -> Value {
        // In XML, a member has two tags, each on an indented line.
        self.left = self.left.saturating_sub(2 * name.len() + 64);
        if let Some(given) = schema.given_example()
            && let Some(left) = self.left.checked_sub(given.to_string().len())
        {
            self.left = left;
            return given;
        }
        let allows = |kind: &str| schema.allows(kind);
        let may_nest = depth > 0 && self.left > 0;
        match () {
            () if allows("string") => Value::from(format!("a value for {name}")),
            () if allows("integer") => json!(1),
            () if allows("number") => json!(1.5),
            () if allows("boolean") => json!(true),
            () if allows("array") && may_nest => json!([self.value(name, schema.items(), depth - 1)]),
            () if allows("object") && may_nest => self.object(schema, depth - 1),
            () if allows("array") => json!([]),
            () if allows("object") => json!({}),
            () => Value::from(format!("a value for {name}")),
        }
    }
}
