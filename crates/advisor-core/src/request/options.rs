//! `ChatOptions`, `ToolChoice` and `ResponseFormat`; `or` merges options with defaults.

use std::fmt;

use message_aggregator::Text;
use serde_json::{Map, Value};

/// Settings of an answer. Fields that are `None` or empty are left to the provider.
///
/// `Debug` shows only the names of the extra fields, not their values.
///
/// # Example
/// ```
/// use advisor_core::{ChatOptions, ToolChoice};
///
/// let options = ChatOptions { temperature: Some(0.2), tool_choice: Some(ToolChoice::None), ..ChatOptions::default() };
/// assert_eq!(options.model, None);
/// ```
#[must_use]
#[derive(Clone, Default, PartialEq)]
pub struct ChatOptions {
    /// The model; `None` uses the provider's default.
    pub model: Option<Text>,
    /// Randomness.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// The maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<Text>,
    /// The seed for sampling, if the provider supports it.
    pub seed: Option<i64>,
    /// Whether and which tool to call.
    pub tool_choice: Option<ToolChoice>,
    /// Whether one answer may ask for several tools.
    pub parallel_tool_calls: Option<bool>,
    /// Whether a call counts as complete when the next block begins. Correct only for providers that never interleave
    /// calls. If false, the provider's profile decides.
    pub eager_calls: bool,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat>,
    /// Extra fields of the request body, passed through unchanged; they override the fields above.
    pub extra: Map<String, Value>,
}

/// Whether and which tool the model is to call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one tool. The loop sends this up to the first round that runs tools: the turn would never end otherwise.
    Required,
    /// This tool. The loop sends this up to the first round that runs tools.
    Tool(Text),
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name, for the provider.
        name: Text,
        /// The JSON schema.
        schema: Value,
        /// Whether the provider must enforce it.
        strict: bool,
    },
}

impl ResponseFormat {
    /// Returns the instruction for a model whose server does not enforce this form; `None` for plain text.
    ///
    /// ```
    /// use advisor_core::ResponseFormat;
    /// use serde_json::json;
    ///
    /// let number = json!({"type": "number"});
    /// let format = ResponseFormat::JsonSchema { name: "n".into(), schema: number, strict: false };
    /// assert!(format.instruction().is_some_and(|words| words.ends_with(r#"{"type":"number"}"#)));
    /// ```
    #[must_use]
    pub fn instruction(&self) -> Option<String> {
        let form = match self {
            Self::Text => return None,
            Self::JsonObject => return Some(answer_with("one JSON object")),
            Self::JsonSchema { schema, .. } => schema,
        };
        Some(format!("{}:\n{form}", answer_with("one JSON value that fits this JSON schema")))
    }
}

fn answer_with(value: &str) -> String {
    format!("When you answer the user, answer with {value}, and with nothing around it")
}

impl ChatOptions {
    /// Adds an extra field of the request body, passed through unchanged.
    pub fn with_extra(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(field.into(), value.into());
        self
    }

    /// Fills unset fields from `defaults`.
    pub fn or(self, defaults: &Self) -> Self {
        let mut extra = defaults.extra.clone();
        extra.extend(self.extra);
        Self {
            model: self.model.or_else(|| defaults.model.clone()),
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            stop: if self.stop.is_empty() { defaults.stop.clone() } else { self.stop },
            seed: self.seed.or(defaults.seed),
            tool_choice: self.tool_choice.or_else(|| defaults.tool_choice.clone()),
            parallel_tool_calls: self.parallel_tool_calls.or(defaults.parallel_tool_calls),
            eager_calls: self.eager_calls || defaults.eager_calls,
            response_format: self.response_format.or_else(|| defaults.response_format.clone()),
            extra,
        }
    }
}

impl fmt::Debug for ChatOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatOptions")
            .field("model", &self.model)
            .field("temperature", &self.temperature)
            .field("top_p", &self.top_p)
            .field("max_tokens", &self.max_tokens)
            .field("stop", &self.stop)
            .field("seed", &self.seed)
            .field("tool_choice", &self.tool_choice)
            .field("parallel_tool_calls", &self.parallel_tool_calls)
            .field("eager_calls", &self.eager_calls)
            .field("response_format", &self.response_format)
            // The values may be secrets, such as the key of a gateway.
            .field("extra", &self.extra.keys())
            .finish()
    }
}
