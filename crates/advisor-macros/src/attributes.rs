//! Doc comments as text, and the attributes of a parameter that belong to a field.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the doc comment of an item: its lines without the space after the slashes.
pub(crate) fn doc_text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let without_space = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    lines.map(without_space).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Checks whether an attribute of a parameter belongs to the field of the arguments.
pub(crate) fn is_of_field(attribute: &Attribute) -> bool {
    ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name))
}
