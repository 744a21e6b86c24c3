use message_aggregator::{Part, Text};
use serde::Serialize;
use serde_json::Value;

/// What a tool answers: one or more parts.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model is told, and the user if the tool returns directly.
    pub parts: Vec<Part>,
}

impl ToolOutput {
    /// An answer of one JSON value: a struct, a list, a number, whatever can be serialised.
    ///
    /// # Errors
    /// If it cannot be JSON, such as a map whose keys are no texts.
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

impl From<Part> for ToolOutput {
    fn from(part: Part) -> Self {
        Self { parts: vec![part] }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Part::from(text).into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Part::from(text).into()
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Part::from(value).into()
    }
}

impl From<Vec<Part>> for ToolOutput {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts }
    }
}

/// Why a tool did not do what it was asked; the model reads it.
///
/// Any error converts into it with `?`; its text and the texts of its sources are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(Text);

impl ToolError {
    /// An error with this text.
    pub fn new(text: impl Into<Text>) -> Self {
        Self(text.into())
    }

    /// What the model reads.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.0
    }
}

// Not an `Error` itself: that is what lets every error convert into it.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(text.into())
    }
}
