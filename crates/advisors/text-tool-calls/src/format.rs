//! `TextFormat` and `ToolCallFormat`: how a model calls its tools, and the variable that chooses it.

use std::env;
use std::str::FromStr;

use advisor_core::Error;

/// A syntax in which a model writes tool calls into its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextFormat {
    /// `<tool name="…"><arguments><arg name="…">…</arg></arguments></tool>`, and the short forms of tools.
    Xml,
    /// `{"tool": {"function": "…", "parameters": {…}}}`, and the forms that OpenAI and Gemini use.
    Json,
    /// `[[SEG_START {"type": "tool", "tool_name": "…"}]]{…}[[SEG_END]]`.
    Sentinel,
    /// The markup of DeepSeek's models, which some servers leave in the text: DSML, and the tokens of V3, R1 and V3.1,
    /// also with ASCII bars.
    DeepSeek,
    /// The markup of Kimi's models, which some servers leave in the text.
    Kimi,
}

impl TextFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Xml, Self::Json, Self::Sentinel, Self::DeepSeek, Self::Kimi];

    /// Returns the name: `xml`, `json`, `sentinel`, `deepseek` or `kimi`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Sentinel => "sentinel",
            Self::DeepSeek => "deepseek",
            Self::Kimi => "kimi",
        }
    }
}

/// The way in which a model learns of its tools and calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a call is text or it is not")]
pub enum ToolCallFormat {
    /// By the provider's interface for tools.
    Api,
    /// In the text.
    Text(TextFormat),
}

impl From<TextFormat> for ToolCallFormat {
    fn from(format: TextFormat) -> Self {
        Self::Text(format)
    }
}

impl ToolCallFormat {
    /// The environment variable that chooses the format.
    const VARIABLE: &'static str = "ADVISOR_TOOL_CALL_FORMAT";
    /// Its name in programs whose users come from there; it is read if the other is unset or blank.
    const OTHER_VARIABLE: &'static str = "AUTOBYTEUS_STREAM_PARSER";

    /// Returns the format that the environment variable `ADVISOR_TOOL_CALL_FORMAT` chooses: `xml`, `json`, `sentinel`,
    /// `deepseek`, `kimi` or `api_tool_call`. `None` if it is unset or blank.
    ///
    /// `advisor chat` and `advisor serve` call it, and no library does by itself.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the value is no format.
    pub fn from_env() -> Result<Option<Self>, Error> {
        let values = [Self::VARIABLE, Self::OTHER_VARIABLE].map(|name| env::var(name).unwrap_or_default());
        values.iter().find(|value| !value.trim().is_empty()).map(|value| value.parse()).transpose()
    }
}

/// Reads a format. Upper and lower case are equal, and white space around it is ignored.
impl FromStr for ToolCallFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let name = text.trim().to_ascii_lowercase();
        if name == "api_tool_call" {
            return Ok(Self::Api);
        }
        let format = TextFormat::ALL.into_iter().find(|format| format.as_str() == name);
        // No default: a misspelt `xml` would silently change how tools are described.
        format.map(Self::Text).ok_or_else(|| {
            let value: String = name.chars().take(40).collect();
            Error::configuration(format!(
                "unknown tool call format `{value}`; set {} to xml, json, sentinel, deepseek, kimi or api_tool_call",
                Self::VARIABLE
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_formats_are_read_and_others_refused() {
        for (name, expected) in [
            (" XML\n", Some(ToolCallFormat::Text(TextFormat::Xml))),
            ("json", Some(ToolCallFormat::Text(TextFormat::Json))),
            ("Sentinel", Some(ToolCallFormat::Text(TextFormat::Sentinel))),
            ("kimi", Some(ToolCallFormat::Text(TextFormat::Kimi))),
            ("api_tool_call", Some(ToolCallFormat::Api)),
            ("native", None),
            ("", None),
        ] {
            assert_eq!(name.parse().ok(), expected, "{name}");
        }
        let error = "yaml".parse::<ToolCallFormat>().unwrap_err().to_string();
        assert!(error.contains("`yaml`; set"), "{error}");
    }
}
