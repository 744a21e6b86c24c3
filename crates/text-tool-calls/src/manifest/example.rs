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

/// Returns example arguments for this schema.
pub(super) fn arguments(parameters: &Value, members: Members) -> Value {
    object(Schema::new(parameters), members, MAX_DEPTH)
}

fn object(schema: Schema<'_>, members: Members, depth: usize) -> Value {
    let required = schema.required();
    let names = schema.property_names().into_iter();
    let names = names.filter(|name| members == Members::All || required.contains(name));
    names
        .map(|name| (name.clone(), value(&name, schema.property(&name), members, depth)))
        .collect::<Map<_, _>>()
        .into()
}

fn value(name: &str, schema: Schema<'_>, members: Members, depth: usize) -> Value {
    if let Some(given) = schema.given_example() {
        return given;
    }
    let allows = |kind: &str| schema.allows(kind);
    match () {
        () if allows("string") => Value::from(format!("a value for {name}")),
        () if allows("integer") => json!(1),
        () if allows("number") => json!(1.5),
        () if allows("boolean") => json!(true),
        () if allows("array") && depth > 0 => json!([value(name, schema.items(), members, depth - 1)]),
        () if allows("object") && depth > 0 => object(schema, members, depth - 1),
        () if allows("array") => json!([]),
        () if allows("object") => json!({}),
        () => Value::from(format!("a value for {name}")),
    }
}
