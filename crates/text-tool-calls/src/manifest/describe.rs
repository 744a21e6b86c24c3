//! Describes a tool as elements, and makes example arguments for its schema.

use std::fmt::Write;

use advisor_core::ToolDefinition;
use serde_json::{Map, Value, json};

use crate::entities::encoded;
use crate::tools::schema::Schema;

/// The depth of an example.
const MAX_DEPTH: usize = 4;
/// The depth up to which members of arguments are listed.
const MAX_LISTED_DEPTH: usize = 8;

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

/// Describes a tool as an element with an element per argument, in about `most` bytes. Beyond, arguments have their names and
/// types alone, and no members: schemas that refer to one another may have any number of them.
pub(super) fn in_xml(definition: &ToolDefinition, most: usize) -> String {
    let schema = Schema::new(&definition.parameters);
    let (name, description) = (encoded(&definition.name), encoded(&definition.description));
    let mut text = format!("<tool name=\"{name}\" description=\"{description}\">\n");
    if !schema.property_names().is_empty() {
        text.push_str("    <arguments>\n");
        write_members(schema, 2, most, &mut text);
        text.push_str("    </arguments>\n");
    }
    text.push_str("</tool>");
    text
}

fn write_members(schema: Schema<'_>, depth: usize, most: usize, out: &mut String) {
    let required = schema.required();
    for name in schema.property_names() {
        if out.len() / 2 > most {
            out.push_str("<!-- Further arguments are left out. -->\n");
            return;
        }
        let member = schema.property(&name);
        let is_required = required.contains(&name);
        let mut attributes = format!("name=\"{}\" type=\"{}\"", encoded(&name), member.type_name());
        let described = [("description", member.description()), ("values", member.choices())];
        for (attribute, value) in described {
            if let Some(value) = value.filter(|value| out.len().saturating_add(value.len()) <= most) {
                let _ = write!(attributes, " {attribute}=\"{}\"", encoded(&value));
            }
        }
        let _ = write!(attributes, " required=\"{is_required}\"");
        write_element("arg", &attributes, member, (depth, most), out);
    }
}

fn write_element(
    element: &str,
    attributes: &str,
    schema: Schema<'_>,
    (depth, most): (usize, usize),
    out: &mut String,
) {
    let indent = "    ".repeat(depth);
    let has_items = schema.allows("array") && !schema.items().is_empty();
    if depth > MAX_LISTED_DEPTH || out.len() > most || (schema.property_names().is_empty() && !has_items) {
        let _ = writeln!(out, "{indent}<{element} {attributes} />");
        return;
    }
    let _ = writeln!(out, "{indent}<{element} {attributes}>");
    if has_items {
        let items = schema.items();
        write_element("items", &format!("type=\"{}\"", items.type_name()), items, (depth + 1, most), out);
    } else {
        write_members(schema, depth + 1, most, out);
    }
    let _ = writeln!(out, "{indent}</{element}>");
}
