//! Describes a tool as elements.

use std::fmt::Write;

use advisor_core::ToolDefinition;

use crate::parser::markup::entities::encoded;
use crate::tools::coercion::Schema;

/// The depth up to which members of arguments are listed.
const MAX_DEPTH: usize = 8;

/// Describes a tool as an element with an element per argument, in about `most` bytes. Beyond, arguments have their names and
/// types alone, and no members: schemas that refer to one another may have any number of them.
pub(super) fn written(definition: &ToolDefinition, most: usize) -> String {
    let schema = Schema::new(&definition.parameters);
    let (name, description) = (encoded(&definition.name), encoded(&definition.description));
    let mut text = format!("<tool name=\"{name}\" description=\"{description}\">\n");
    if schema.property_names().is_empty() {
        text.push_str("    <!-- This tool takes no arguments. -->\n");
    } else {
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
    if depth > MAX_DEPTH || out.len() > most || (schema.property_names().is_empty() && !has_items) {
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
