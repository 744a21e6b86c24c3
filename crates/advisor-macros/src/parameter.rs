//! `Parameter`: an argument of the model or the invocation; checks of its type.

use quote::ToTokens;
use syn::{Attribute, Error, Ident, Pat, PatType, Result, Type};

use crate::attributes::is_of_field;

/// A parameter of the function, apart from `self`.
pub(crate) enum Parameter {
    /// An argument that the model writes.
    Argument(Box<Argument>),
    /// The invocation, by reference.
    Borrowed,
    /// The invocation, by value.
    Owned,
}

/// An argument that the model writes, as a field of the arguments.
pub(crate) struct Argument {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) kind: Type,
}

impl Parameter {
    pub(crate) fn new(parameter: &PatType) -> Result<Self> {
        match &*parameter.ty {
            Type::Reference(reference)
                if reference.mutability.is_none() && is_invocation(&reference.elem) =>
            {
                Ok(Self::Borrowed)
            }
            kind if is_invocation(kind) => Ok(Self::Owned),
            kind => Ok(Self::Argument(Box::new(Argument {
                attributes: field_attributes(parameter),
                name: name_of(&parameter.pat)?,
                kind: owned(kind)?,
            }))),
        }
    }
}

fn field_attributes(parameter: &PatType) -> Vec<Attribute> {
    parameter.attrs.iter().filter(|attribute| is_of_field(attribute)).cloned().collect()
}

fn is_invocation(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "ToolInvocation")
}

fn name_of(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(name.ident.clone()),
        _ => Err(Error::new_spanned(
            pattern,
            "an argument needs a name, which the model reads: write `name: Type`, and take it apart in the body",
        )),
    }
}

/// Returns the type of an argument if it is neither a reference nor generic.
fn owned(kind: &Type) -> Result<Type> {
    let taken = match kind {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
            Type::Path(path) if path.path.is_ident("str") => String::from("String"),
            other => text(other),
        },
        Type::ImplTrait(_) => {
            let message =
                "a tool has one schema, so its arguments are not generic: take a type such as `String`";
            return Err(Error::new_spanned(kind, message));
        }
        _ => return Ok(kind.clone()),
    };
    let message =
        format!("an argument is read from JSON, so the tool owns it: take `{taken}`, not `{}`", text(kind));
    Err(Error::new_spanned(kind, message))
}

/// Returns a type as text, without the spaces between its tokens.
fn text(kind: &Type) -> String {
    let tokens = kind.to_token_stream().to_string();
    tokens.replace(" :: ", "::").replace(" <", "<").replace("< ", "<").replace(" >", ">").replace("& ", "&")
}
