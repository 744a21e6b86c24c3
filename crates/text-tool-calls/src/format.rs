//! `PromptFormat` and `ToolCallFormat`: how a model calls its tools, and the environment variable that chooses it.

use std::env;
use std::str::FromStr;

use advisor_core::{Error, Text};

use crate::TextFormat;

/// A syntax in which a model can be asked to write tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptFormat {
    /// See [`TextFormat::Xml`].
    Xml,
    /// See [`TextFormat::Json`].
    Json,
    /// See [`TextFormat::Sentinel`].
    Sentinel,
}

impl PromptFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Xml, Self::Json, Self::Sentinel];

    /// Returns the format that suits the models of a provider: XML for Anthropic, else JSON.
    #[must_use]
    pub fn for_provider(provider: &str) -> Self {
        if provider.trim().eq_ignore_ascii_case("anthropic") { Self::Xml } else { Self::Json }
    }
}

impl From<PromptFormat> for TextFormat {
    fn from(format: PromptFormat) -> Self {
        match format {
            PromptFormat::Xml => Self::Xml,
            PromptFormat::Json => Self::Json,
            PromptFormat::Sentinel => Self::Sentinel,
        }
    }
}

/// The providers that are known to have an interface for tools.
const WITH_INTERFACE: [&str; 5] = ["anthropic", "gemini", "mistral", "ollama", "openai"];

/// The way in which a model learns of its tools and calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a call is text or it is not")]
pub enum ToolCallFormat {
    /// By the provider's interface for tools.
    Api,
    /// In the text.
    Text(PromptFormat),
}

impl ToolCallFormat {
    /// The environment variable that chooses the format: `xml`, `json`, `sentinel` or `api_tool_call`.
    pub const VARIABLE: &'static str = "ADVISOR_TOOL_CALL_FORMAT";
    /// Another name of the variable, which is read if [`VARIABLE`](Self::VARIABLE) is unset or blank.
    pub const ALIAS: &'static str = "AUTOBYTEUS_STREAM_PARSER";

    /// Returns the format that suits a provider: its interface for tools if it is known to have one, else that of
    /// [`PromptFormat::for_provider`].
    ///
    /// Small models and compatible servers may lack the interface of their provider; then choose a format of text.
    #[must_use]
    pub fn for_provider(provider: &str) -> Self {
        let provider = provider.trim();
        if WITH_INTERFACE.iter().any(|known| known.eq_ignore_ascii_case(provider)) {
            Self::Api
        } else {
            Self::Text(PromptFormat::for_provider(provider))
        }
    }

    /// Returns the format that the environment chooses; `None` if the variables are unset or blank.
    ///
    /// `advisor chat` and `advisor serve` call it, and no library does by itself.
    ///
    /// # Errors
    /// [`FormatError`] if the value is no format.
    pub fn from_env() -> Result<Option<Self>, FormatError> {
        let values = [Self::VARIABLE, Self::ALIAS].map(|name| env::var(name).unwrap_or_default());
        Self::from_values(&values)
    }

    fn from_values(values: &[String]) -> Result<Option<Self>, FormatError> {
        values.iter().find(|value| !value.trim().is_empty()).map(|value| value.parse()).transpose()
    }
}

/// Reads a format. Upper and lower case are equal, and white space around it is ignored.
impl FromStr for ToolCallFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "xml" => Ok(Self::Text(PromptFormat::Xml)),
            "json" => Ok(Self::Text(PromptFormat::Json)),
            "sentinel" => Ok(Self::Text(PromptFormat::Sentinel)),
            "api_tool_call" => Ok(Self::Api),
            "native" => Err(FormatError::Native),
            // No default: a misspelt `xml` would silently change how tools are described.
            other => Err(FormatError::Unknown { value: other.chars().take(40).collect::<String>().into() }),
        }
    }
}

/// The reason why a text is no [`ToolCallFormat`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// An earlier name of `api_tool_call`.
    #[error("the tool call format `native` is now called `api_tool_call`")]
    Native,
    /// No format has this name.
    #[error("unknown tool call format `{value}`; use xml, json, sentinel or api_tool_call")]
    Unknown {
        /// The beginning of the text.
        value: Text,
    },
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::configuration(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_environment_have_documented_results() {
        let xml = Ok(Some(ToolCallFormat::Text(PromptFormat::Xml)));
        for (ours, alias, expected) in [
            ("", "", Ok(None)),
            (" ", "\t", Ok(None)),
            (" XML\n", "json", xml.clone()),
            ("", "xml", xml),
            ("json", "", Ok(Some(ToolCallFormat::Text(PromptFormat::Json)))),
            ("Sentinel", "", Ok(Some(ToolCallFormat::Text(PromptFormat::Sentinel)))),
            ("api_tool_call", "xml", Ok(Some(ToolCallFormat::Api))),
            ("native", "", Err(FormatError::Native)),
            ("", "Native", Err(FormatError::Native)),
            ("yaml", "xml", Err(FormatError::Unknown { value: "yaml".into() })),
        ] {
            assert_eq!(ToolCallFormat::from_values(&[ours.into(), alias.into()]), expected, "{ours} {alias}");
        }
    }

    #[test]
    fn providers_have_a_format() {
        for (provider, expected) in [
            ("Anthropic", PromptFormat::Xml),
            ("openai", PromptFormat::Json),
            ("gemini", PromptFormat::Json),
            ("", PromptFormat::Json),
        ] {
            assert_eq!(PromptFormat::for_provider(provider), expected, "{provider}");
        }
        for (provider, expected) in [
            (" OpenAI", ToolCallFormat::Api),
            ("anthropic", ToolCallFormat::Api),
            ("ollama", ToolCallFormat::Api),
            ("other", ToolCallFormat::Text(PromptFormat::Json)),
        ] {
            assert_eq!(ToolCallFormat::for_provider(provider), expected, "{provider}");
        }
    }
}
