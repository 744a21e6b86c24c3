//! `ToolFunction`: a checked function with its name and description.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::{Error, Expr, FnArg, ItemFn, LitStr, Receiver, ReceiverKind, Result, Signature, parse_quote};

use crate::attributes::{doc_text, is_of_field};
use crate::parameter::Parameter;
use crate::settings::Settings;

/// The longest name that all servers accept, as in `ToolDefinition::validate`.
const LONGEST_NAME: usize = 64;

/// A function that can be a tool, with its name and description for the model.
pub(crate) struct ToolFunction {
    /// The function without the attributes that belong to the arguments.
    pub(crate) item: ItemFn,
    pub(crate) name: LitStr,
    pub(crate) description: Expr,
    pub(crate) is_method: bool,
    pub(crate) parameters: Vec<Parameter>,
}

impl ToolFunction {
    pub(crate) fn new(item: TokenStream, settings: &Settings) -> Result<Self> {
        let item = parse(item)?;
        let signature = &item.sig;
        if let Some(first) = signature.generics.params.first() {
            let message = "a tool has one schema, so its function is not generic: write the types out";
            return Err(Error::new_spanned(first, message));
        }
        let (receivers, parameters): (Vec<_>, Vec<_>) =
            signature.inputs.iter().partition(|input| matches!(input, FnArg::Receiver(_)));
        if let Some(FnArg::Receiver(receiver)) = receivers.first() {
            check_receiver(receiver)?;
        }
        if let (Some((blocking, _)), Some(_)) = (&settings.blocking, &signature.asyncness) {
            let message = "`blocking` is for functions that block their thread: remove it, or the `async`";
            return Err(Error::new_spanned(blocking, message));
        }
        Ok(Self {
            name: name(signature, settings)?,
            description: description(&item, settings)?,
            is_method: !receivers.is_empty(),
            parameters: read_parameters(&parameters)?,
            item: without_field_attributes(item),
        })
    }
}

fn parse(item: TokenStream) -> Result<ItemFn> {
    let is_function = item.clone().into_iter().any(|token| token.to_string() == "fn");
    if is_function {
        return syn::parse2(item);
    }
    let message = "`#[tool]` is for functions: write it above a `fn`, also above one in an `impl` block";
    Err(Error::new_spanned(item, message))
}

/// Returns the function without the attributes of its parameters that belong to the arguments.
pub(crate) fn without_field_attributes(mut item: ItemFn) -> ItemFn {
    for input in &mut item.sig.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.retain(|attribute| !is_of_field(attribute));
        }
    }
    item
}

fn check_receiver(receiver: &Receiver) -> Result<()> {
    let is_shared = matches!(receiver.kind, ReceiverKind::Reference(_, _, None));
    if is_shared {
        return Ok(());
    }
    let message = "a tool runs many times, also at the same time, so its method takes `&self`: \
                   put what changes behind a `Mutex`";
    Err(Error::new_spanned(receiver, message))
}

fn read_parameters(inputs: &[&FnArg]) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    let mut has_invocation = false;
    for input in inputs {
        let FnArg::Typed(typed) = input else { continue };
        let parameter = Parameter::new(typed)?;
        if !matches!(parameter, Parameter::Argument(_)) && std::mem::replace(&mut has_invocation, true) {
            return Err(Error::new_spanned(input, "a call has one invocation: remove this parameter"));
        }
        parameters.push(parameter);
    }
    Ok(parameters)
}

fn description(item: &ItemFn, settings: &Settings) -> Result<Expr> {
    if let Some(description) = &settings.description {
        return Ok(description.clone());
    }
    let text = doc_text(&item.attrs);
    if text.is_empty() {
        let message = "the model chooses a tool by its description: write a doc comment above the function, \
                       or `#[tool(description = \"…\")]`";
        return Err(Error::new_spanned(&item.sig.ident, message));
    }
    Ok(parse_quote!(#text))
}

/// Returns the name of the tool, if all servers accept it.
fn name(signature: &Signature, settings: &Settings) -> Result<LitStr> {
    let unraw = signature.ident.unraw();
    let name = settings.name.clone().unwrap_or_else(|| LitStr::new(&unraw.to_string(), unraw.span()));
    let text = name.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(fits) {
        return Ok(name);
    }
    let message = format!(
        "servers refuse this name: a tool has a name of 1 to {LONGEST_NAME} letters, digits, `_`, `-` and `.`; \
         write `#[tool(name = \"…\")]`"
    );
    Err(Error::new(name.span(), message))
}
