//! `Settings`: the text in the parentheses of the attribute: own settings, and fields of `ToolDefinition`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, LitStr, Path, Result, Token};

/// The settings in the parentheses of `#[tool(…)]`.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    /// The setting `blocking`, with the number of runs at a time.
    pub(crate) blocking: Option<(Ident, Expr)>,
    pub(crate) source: Option<Path>,
    /// Fields of `ToolDefinition` with their values.
    pub(crate) fields: Vec<TokenStream>,
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            settings.read_one(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(settings)
    }
}

impl Settings {
    fn read_one(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key = Ident::parse_any(input)?;
        let is_repeated = match key.to_string().as_str() {
            "name" => self.name.replace(value(input, &key, "\"weather\"")?).is_some(),
            "description" => {
                self.description.replace(value(input, &key, "\"Tells the weather.\"")?).is_some()
            }
            "blocking" => {
                let limit = value(input, &key, "4")?;
                self.blocking.replace((key.clone(), limit)).is_some()
            }
            "crate" => {
                let path: LitStr = value(input, &key, "\"advisor_chain::tools\"")?;
                self.source.replace(path.parse()?).is_some()
            }
            _ => {
                self.fields.push(field(input, &key)?);
                false
            }
        };
        if is_repeated {
            return Err(Error::new_spanned(&key, format!("`{key}` is set twice")));
        }
        Ok(())
    }
}

/// Parses `= value` after a key.
fn value<T: Parse>(input: ParseStream<'_>, key: &Ident, example: &str) -> Result<T> {
    let wanted = |_| Error::new_spanned(key, format!("`{key}` needs a value: write `{key} = {example}`"));
    input.parse::<Token![=]>().map_err(wanted)?;
    input.parse().map_err(wanted)
}

/// Parses a field of `ToolDefinition`: its value, or a flag by its name alone.
fn field(input: ParseStream<'_>, key: &Ident) -> Result<TokenStream> {
    if !input.peek(Token![=]) {
        return Ok(quote!(#key: true));
    }
    let value: Expr = value(input, key, "Effect::Pure")?;
    Ok(quote!(#key: ::core::option::Option::Some(#value)))
}
