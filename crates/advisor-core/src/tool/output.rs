//! `ToolOutput` and `ToolError`: result parts, or an error text for the model.

use message_aggregator::{Part, Text};
use serde::Serialize;
use serde_json::Value;

use crate::text_with_sources;

/// Result of a tool: one or more parts.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model, and for the user if the tool returns directly.
    pub parts: Vec<Part>,
}

impl ToolOutput {
    /// Creates a result of one JSON value: a struct, a list, a number or any other serialisable value.
    ///
    /// # Errors
    /// If it cannot be serialised as JSON, such as a map whose keys are not strings.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ToolOutput;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Weather {
    ///     degrees: i32,
    /// }
    ///
    /// let output = ToolOutput::json(&Weather { degrees: 21 }).unwrap();
    /// assert_eq!(output, serde_json::json!({"degrees": 21}).into());
    /// ```
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        Ok(serde_json::to_value(value)?.into())
    }
}

macro_rules! from_part {
    ($($content:ty),*) => {$(
        impl From<$content> for ToolOutput {
            fn from(content: $content) -> Self {
                Self { parts: vec![content.into()] }
            }
        }
    )*};
}

from_part!(Part, &str, String, Value);

/// The output of a tool without a result: the model reads "Done."
impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        "Done.".into()
    }
}

impl From<Vec<Part>> for ToolOutput {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts }
    }
}

/// Failure of a tool; the model reads it.
///
/// Any error converts into it with `?`. It keeps the text of the error and of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(Text);

impl ToolError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<Text>) -> Self {
        Self(text.into())
    }

    /// Returns the text that the model reads.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.0
    }
}

// It does not implement `std::error::Error`, so that every error can convert into it.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(text_with_sources(&error).into())
    }
}
