//! Tools whose schema comes from a Rust type: `FnTool::typed`, `schema_for`, and the conversions for `#[tool]`.
//!
//! The macro's code selects a conversion by the type of the returned value. Each is a trait of a [`Kind`] behind a number of
//! references. A method call tries the type with most references first, so the first conversion that applies is used. The name
//! of the return type would not do: an alias hides `Result`, and a failed call would be a success.

use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;

use advisor_core::{Text, ToolDefinition, ToolError, ToolInvocation, ToolOutput, text_with_sources};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::FnTool;

impl FnTool {
    /// Returns a tool whose schema is derived from its argument type, and that also receives the invocation.
    ///
    /// The invocation has the conversation and its tenant, the turn with its id and extensions, the key of the
    /// call, and the progress reporter. Dropping the turn drops the future of the tool. The type must be a struct,
    /// since servers want an object. Its doc comments become descriptions for the model. A crate
    /// without a dependency on `schemars` derives with `#[schemars(crate = "tool_call_advisor::schemars")]`, or with
    /// `advisor_chain::tools::schemars` through the facade.
    ///
    /// # Errors
    /// Arguments that do not fit are an error result that names the position, and the closure is not called. An
    /// error of the closure is an error result with its text; every error converts with `?`.
    ///
    /// # Example
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use tool_call_advisor::{FnTool, JsonSchema, Tool, ToolOutput};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Weather {
    ///     /// The city, in English.
    ///     city: String,
    ///     days: Option<u8>,
    /// }
    ///
    /// #[derive(Serialize)]
    /// struct Forecast {
    ///     degrees: Vec<i32>,
    /// }
    ///
    /// let weather = FnTool::typed("weather", "Tells the weather.", |args: Weather, call| async move {
    ///     call.progress.report(format!("looking at {}", args.city)).await;
    ///     let days = usize::from(args.days.unwrap_or(1));
    ///     ToolOutput::json(&Forecast { degrees: vec![21; days] })
    /// });
    /// let schema = &weather.definition().parameters;
    /// assert_eq!(schema["properties"]["city"]["description"], "The city, in English.");
    /// assert_eq!(schema["required"], serde_json::json!(["city"]));
    /// ```
    pub fn typed<A, O, F, Fut>(name: impl Into<Text>, description: impl Into<Text>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        O: Into<ToolOutput>,
        F: Fn(A, ToolInvocation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let definition = ToolDefinition::new(name, description, schema_for::<A>());
        Self::with_invocation(definition, move |invocation| {
            // Calls the closure before the future is polled, so that argument types need not be `Send`.
            let running = invocation.parse().map(|arguments| run(arguments, invocation));
            async move { Ok(running?.await?.into()) }
        })
    }
}

/// Returns the JSON schema of a type in the form that a tool definition needs: draft 2020-12, always the same.
///
/// Subschemas are inlined; only a recursive type needs `$defs`. Nothing is fetched. Names of types and the widths
/// of numbers are left out: they mean nothing to a model, and some servers refuse formats such as `uint8`.
///
/// # Example
/// ```
/// #[derive(serde::Deserialize, tool_call_advisor::JsonSchema)]
/// struct Weather {
///     city: String,
/// }
///
/// let schema = tool_call_advisor::schema_for::<Weather>();
/// let city = serde_json::json!({"city": {"type": "string"}});
/// assert_eq!(schema, serde_json::json!({"type": "object", "properties": city, "required": ["city"]}));
/// ```
#[must_use]
pub fn schema_for<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        // Readers assume this draft if none is named, and some servers refuse the name.
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(without_widths));
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.to_value()
}

/// A type of an argument of a function with `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "an argument of a tool needs a JSON Schema, which `{Self}` does not have",
    label = "no `JsonSchema`",
    note = "derive it, `#[derive(serde::Deserialize, schemars::JsonSchema)]`, or name another type's: `#[schemars(with = \"String\")]`"
)]
pub trait HasSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> HasSchema for T {}

/// Compiles if the type has a schema.
pub fn needs_schema<T: HasSchema>() {}

/// Removes the formats of numbers, which name Rust types and are not part of JSON Schema.
fn without_widths(schema: &mut Schema) {
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    let numbers = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        Some(kind) => is_number(kind),
        None => false,
    };
    if numbers {
        schema.remove("format");
    }
}

/// The type of a returned value.
#[derive(Debug)]
pub struct Kind<T>(PhantomData<fn() -> T>);

impl<T> Kind<T> {
    /// Returns the kind of a value.
    #[must_use]
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// A result whose error converts to [`ToolError`], as all that implement [`Error`].
pub trait ConvertedError<T, E> {
    /// Converts the error.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: Into<ToolError>> ConvertedError<T, E> for &&&Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(Into::into)
    }
}

/// A result whose error contains one: a boxed error, or one of the crate `anyhow`.
pub trait ErrorWithSources<T, E> {
    /// Converts the error to its text and those of its sources.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: AsRef<dyn Error + Send + Sync>> ErrorWithSources<T, E> for &&Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(|error| ToolError::new(text_with_sources(error.as_ref())))
    }
}

/// Any other result: its error must be displayable.
pub trait DisplayedError<T, E> {
    /// Converts the error to its text.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>
    where
        E: Display;
}

impl<T, E> DisplayedError<T, E> for &Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>
    where
        E: Display,
    {
        // The alternate form is that of errors with their sources.
        result.map_err(|error| ToolError::new(format!("{error:#}")))
    }
}

/// A value that is no result.
pub trait NoError<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// None.
    fn checked(&self, value: T) -> Result<T, ToolError>;
}

impl<T> NoError<T> for Kind<T> {
    fn checked(&self, value: T) -> Result<T, ToolError> {
        Ok(value)
    }
}

/// A value that converts to [`ToolOutput`], such as a text, a part or nothing.
pub trait ConvertedResult<T> {
    /// Converts the value.
    ///
    /// # Errors
    /// None.
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>;
}

impl<T: Into<ToolOutput>> ConvertedResult<T> for &Kind<T> {
    fn output(&self, value: T) -> Result<ToolOutput, ToolError> {
        Ok(value.into())
    }
}

/// Any other value: it must be serialisable.
pub trait AnyResult<T> {
    /// Serialises the value. A value that is a text in JSON is a text for the model.
    ///
    /// # Errors
    /// If it cannot be serialised as JSON, such as a map whose keys are not strings.
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: Serialize;
}

impl<T> AnyResult<T> for Kind<T> {
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: Serialize,
    {
        Ok(match serde_json::to_value(value)? {
            Value::String(text) => text.into(),
            value => value.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_number_widths_are_left_out() {
        let schema = |schema: Value| {
            let mut schema: Schema = schema.try_into().unwrap();
            without_widths(&mut schema);
            schema.to_value()
        };
        for kind in [json!("integer"), json!("number"), json!(["number", "null"]), json!(["null", "integer"])]
        {
            let without = schema(json!({"type": kind.clone(), "format": "uint8"}));
            assert_eq!(without, json!({ "type": kind }));
        }
        for kept in [
            json!({"type": "string", "format": "date"}),
            json!({"type": ["string", "null"], "format": "uuid"}),
            json!({"format": "email"}),
        ] {
            assert_eq!(schema(kept.clone()), kept);
        }
    }
}
