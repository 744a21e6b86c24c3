//! Makes example arguments for the schema of a tool.

use advisor_core::ToolDefinition;
use serde_json::{Map, Value, json};

use crate::tools::schema::Schema;

/// The depth of an example.
const MAX_DEPTH: usize = 4;

/// Returns example arguments of a tool: all, or the required ones. They take a multiple of its definition. Deeper ones
/// are empty beyond: schemas that refer to one another may have any number of members.
pub(super) fn arguments(definition: &ToolDefinition, all: bool) -> Value {
    const MULTIPLE: usize = 8;
    const LEAST: usize = 4 << 10;
    let bytes = definition.parameters.to_string().len() + definition.description.len();
    let mut example = Example { all, left: bytes.saturating_mul(MULTIPLE).saturating_add(LEAST) };
    example.object(Schema::new(&definition.parameters), MAX_DEPTH)
}

/// An example that is made.
struct Example {
    /// Whether objects have all members, and not only the required ones.
    all: bool,
    /// The bytes that it may still have.
    left: usize,
}

impl Example {
    fn object(&mut self, schema: Schema<'_>, depth: usize) -> Value {
        let required = schema.required();
        let names = schema.property_names().into_iter();
        let names = names.filter(|name| self.all || required.contains(name));
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
