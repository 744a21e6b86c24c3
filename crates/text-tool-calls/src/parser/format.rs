//! `TextFormat`: the syntaxes, and the characters that they begin with.

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
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Sentinel => "sentinel",
            Self::DeepSeek => "deepseek",
            Self::Kimi => "kimi",
        }
    }

    /// Checks whether a call of this format can begin with this character.
    pub(super) fn begins_with(self, first: char) -> bool {
        match self {
            Self::Xml | Self::DeepSeek | Self::Kimi => first == '<',
            Self::Json => matches!(first, '{' | '['),
            Self::Sentinel => first == '[',
        }
    }
}
