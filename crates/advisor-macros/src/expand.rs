//! `expand`: the function, the struct of its arguments, and the code that makes the tool.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Ident, ItemFn, Path, Result, ReturnType, parse_quote};

use crate::function::{ToolFunction, without_field_attributes};
use crate::parameter::Parameter;
use crate::settings::Settings;

/// Returns the expansion, or the error beside the function as it is, so that nothing else is reported about it.
pub(crate) fn expand_or_error(settings: TokenStream, item: TokenStream) -> TokenStream {
    expand(settings, item.clone()).unwrap_or_else(|error| {
        let function = syn::parse2::<ItemFn>(item.clone());
        let item = function.map_or(item, |function| without_field_attributes(function).into_token_stream());
        let error = error.to_compile_error();
        quote!(#error #item)
    })
}

/// Returns the function and a second one, which makes a tool of it.
fn expand(settings: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let settings: Settings = syn::parse2(settings)?;
    let function = ToolFunction::new(item, &settings)?;
    let source = settings.source.clone().unwrap_or_else(|| parse_quote!(::advisor_chain::tools));
    let arguments = arguments(&function, &source);
    let tool = tool(&function, &settings, &source);
    let ToolFunction { item, name, is_method, .. } = &function;
    let doc = format!("Returns the tool `{}`.", name.value());
    let conditions = item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let visibility = &item.vis;
    let constructor = format_ident!("{}_tool", item.sig.ident.unraw());
    let receiver = is_method.then(|| quote!(self: &::std::sync::Arc<Self>));
    Ok(quote! {
        // Arguments are owned since they are read from JSON.
        #[allow(clippy::needless_pass_by_value)]
        #item

        #(#conditions)*
        #[doc = #doc]
        #[must_use]
        #visibility fn #constructor(#receiver) -> #source::FnTool {
            #[allow(unused_imports)]
            use #source::__private::{
                AnyResult as _, ConvertedError as _, ConvertedResult as _, DisplayedError as _, ErrorWithSources as _,
                NoError as _,
            };
            #arguments
            #tool
        }
    })
}

/// Returns the struct that the arguments of a call are read into.
fn arguments(function: &ToolFunction, source: &Path) -> TokenStream {
    let fields = function.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument(argument) => {
            let (attributes, name, kind) = (&argument.attributes, &argument.name, &argument.kind);
            Some(quote!(#(#attributes)* #name: #kind))
        }
        Parameter::Borrowed | Parameter::Owned => None,
    });
    // The compiler's own words about a missing schema name no remedy. An attribute may give the argument another schema.
    let needs_schema = function.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument(argument) if argument.attributes.iter().all(is_doc) => {
            let kind = &argument.kind;
            Some(quote_spanned!(kind.span()=> #source::__private::needs_schema::<#kind>();))
        }
        _ => None,
    });
    let serde = quote!(#source::__private::serde);
    let schemars = quote!(#source::__private::schemars);
    let (serde_path, schemars_path) = (serde.to_string(), schemars.to_string());
    quote! {
        #[derive(#serde::Deserialize, #schemars::JsonSchema)]
        #[serde(crate = #serde_path)]
        #[schemars(crate = #schemars_path)]
        struct __Arguments {
            #(#fields,)*
        }
        #(#needs_schema)*
    }
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// Returns the name of a generated variable. Those of the function's author do not collide with it.
fn generated(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns the expression that creates the tool.
fn tool(function: &ToolFunction, settings: &Settings, source: &Path) -> TokenStream {
    let (call, state) = (generated("call"), generated("state"));
    let ToolFunction { name, description, is_method, .. } = function;
    let mut definition = quote! {
        #source::ToolDefinition::new(#name, #description, #source::schema_for::<__Arguments>())
    };
    if !settings.fields.is_empty() {
        let fields = &settings.fields;
        definition = quote!(#source::ToolDefinition { #(#fields,)* ..#definition });
    }
    let body = body(function, source);
    let shared = is_method.then(|| quote!(let #state = ::std::sync::Arc::clone(self);));
    let tool = match &settings.blocking {
        Some((_, limit)) => {
            quote!(#source::FnTool::blocking(#definition, #limit, move |#call| { #body }))
        }
        None => {
            let shared = is_method.then(|| quote!(let #state = ::std::sync::Arc::clone(&#state);));
            quote! {
                #source::FnTool::with_invocation(#definition, move |#call| {
                    #shared
                    async move { #body }
                })
            }
        }
    };
    quote!(#shared #tool)
}

/// Returns the statements of one run: read the arguments, call the function, convert what it returns.
fn body(function: &ToolFunction, source: &Path) -> TokenStream {
    let [call, arguments, returned, state] = ["call", "arguments", "returned", "state"].map(generated);
    let signature = &function.item.sig;
    let ident = &signature.ident;
    let inputs = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Argument(argument) => {
            let name = &argument.name;
            quote!(#arguments.#name)
        }
        Parameter::Borrowed => quote!(&#call),
        Parameter::Owned => call.to_token_stream(),
    });
    let called = if function.is_method {
        quote!(Self::#ident(&#state, #(#inputs),*))
    } else {
        quote!(#ident(#(#inputs),*))
    };
    let awaited = signature.asyncness.map(|_| quote!(.await));
    let has_arguments =
        function.parameters.iter().any(|parameter| matches!(parameter, Parameter::Argument(_)));
    let binding = if has_arguments { quote!(let #arguments) } else { quote!(let _) };
    // Errors about the result are shown at its type.
    let place = match &signature.output {
        ReturnType::Type(_, kind) => kind.span(),
        ReturnType::Default => ident.span(),
    };
    let kind = quote!(#source::__private::Kind);
    let mut shown = returned.clone();
    shown.set_span(returned.span().located_at(place));
    let converted = quote_spanned! {Span::call_site().located_at(place)=>
        let #returned = (&&&&#kind::of(&#returned)).checked(#shown)?;
        (&&#kind::of(&#returned)).output(#shown)
    };
    quote! {
        #binding: __Arguments = #call.parse()?;
        let #returned = #called #awaited;
        #converted
    }
}

#[cfg(test)]
mod tests;
