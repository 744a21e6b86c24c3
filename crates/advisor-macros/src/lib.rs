//! The attribute `#[tool]`: a function as a tool of a language model.
//!
#![doc = include_str!("../README.md")]

mod attributes;
mod expand;
mod function;
mod parameter;
mod settings;

use proc_macro::TokenStream;

/// Adds a function that returns this one as a tool: `weather_tool()` for `weather`.
///
/// The function itself stays as it is. It is asynchronous or quick; one that blocks its thread needs `blocking`.
/// On a method with `&self`, the added one is called on an [`Arc`](std::sync::Arc): `shop.find_tool()`. In an `impl`
/// block, a function without `self` cannot be a tool.
///
/// | part of the function | part of the tool |
/// | --- | --- |
/// | its name | the name; other: `name = "…"` |
/// | its doc comment | the description; other: `description = …` |
/// | a parameter | an argument of the model, of any type with `Deserialize` and `JsonSchema` |
/// | the doc comment of a parameter | the description of the argument |
/// | `#[serde(…)]` and `#[schemars(…)]` of a parameter | the same for the argument, such as `#[serde(default)]` |
/// | `Option<T>` | an argument that may be left out |
/// | a parameter `&ToolInvocation` or `ToolInvocation` | none: the call, its turn, conversation and progress |
/// | a text, `ToolOutput`, `Part`, or any type with `Serialize` | the result; `()` is "Done." |
/// | `Result` with any error that can be displayed | the result, or an error result with the text of the error |
///
/// # Settings
/// | setting | effect |
/// | --- | --- |
/// | `exclusive`, `effect = Effect::Pure`, … | sets this field of `ToolDefinition` |
/// | `name = "…"`, `description = …` | replaces the name or the doc comment |
/// | `blocking = N` | runs it off the async threads, at most `N` at a time; see `FnTool::blocking` |
/// | `crate = "…"` | the path of the crate `tool-call-advisor`; `::advisor_chain::tools` by default |
///
/// # Errors
/// Arguments that do not fit are an error result that names the position, and the function is not called.
///
/// # Example
/// ```
/// use tool_call_advisor::{Effect, Tool, ToolInvocation, tool};
///
/// #[derive(serde::Serialize)]
/// struct Forecast {
///     degrees: Vec<i32>,
/// }
///
/// /// Tells the weather.
/// #[tool(effect = Effect::Pure, crate = "tool_call_advisor")]
/// async fn weather(
///     /// The city, in English.
///     city: String,
///     days: Option<u8>,
///     call: &ToolInvocation,
/// ) -> Forecast {
///     call.progress.report(format!("looking at {city}")).await;
///     Forecast { degrees: vec![21; usize::from(days.unwrap_or(1))] }
/// }
///
/// let tool = weather_tool();
/// let schema = &tool.definition().parameters;
/// assert_eq!(schema["properties"]["city"]["description"], "The city, in English.");
/// assert_eq!(schema["required"][0], "city");
/// ```
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand_or_error(settings.into(), function.into()).into()
}
