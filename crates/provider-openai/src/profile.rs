//! What a server wants and does that others do not, as plain data.
//!
//! A [`Profile`] is chosen by the caller, or by [`Profile::for_base_url`] from the host. It holds values only; the code that
//! reads them is the same for all servers. The numbers Q1, Q2, … in this crate name the quirks of real servers that a line is
//! there for; `docs/decisions/openai-profiles-as-data.md` lists them with their sources.

mod servers;
#[cfg(test)]
mod tests;

use advisor_core::{SchemaSupport, Text};

/// What a server wants and does that others do not.
///
/// ```
/// use provider_openai::{MaxTokensField, Profile};
///
/// let mut profile = Profile::compatible();
/// profile.options.max_tokens = MaxTokensField::MaxCompletionTokens;
/// assert_eq!(profile.name, "compatible");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// What the server is called in traces, such as `openai`.
    pub name: Text,
    /// Where requests go, from the base URL on.
    pub endpoint: Endpoint,
    /// How the key is sent.
    pub authorization: Authorization,
    /// How options are written.
    pub options: OptionRules,
    /// How messages are written.
    pub messages: MessageRules,
    /// What streamed text is.
    pub text: TextMode,
}

/// Where requests go, from the base URL on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// `/chat/completions`.
    ChatCompletions,
    /// `/openai/deployments/MODEL/chat/completions?api-version=VERSION`.
    AzureDeployment {
        /// The version of Azure's API.
        api_version: Text,
    },
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authorization {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `api-key: KEY`.
    ApiKeyHeader,
}

/// How options are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionRules {
    /// The field for the most tokens to answer with.
    pub max_tokens: MaxTokensField,
    /// The field for the seed.
    pub seed: SeedField,
    /// The word for "at least one tool".
    pub required_tool: RequiredTool,
    /// How one certain tool is asked for.
    pub named_tool: NamedTool,
    /// Whether usage must be asked for in a stream, and may be: servers that refuse unknown fields send it anyway.
    pub ask_stream_usage: bool,
    /// How much of the form of a streamed answer the server enforces, whichever model is asked.
    pub schema_support: SchemaSupport,
}

/// The field for the most tokens to answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`, which reasoning models of OpenAI insist on.
    MaxCompletionTokens,
}

/// The field for the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeedField {
    /// `seed`.
    Seed,
    /// `random_seed`.
    RandomSeed,
}

/// The word for "at least one tool".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequiredTool {
    /// `required`.
    Required,
    /// `any`.
    Any,
}

/// How one certain tool is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedTool {
    /// By an object that names it.
    Object,
    /// By offering no other one and asking for at least one: the server takes the object for "as you like".
    OfferedAlone,
}

/// How messages are written. What a message looks like on the wire depends on nothing else, so it is kept per rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageRules {
    /// The content of an assistant message that has calls and no text.
    pub no_text: NoText,
    /// Which ids of calls the server accepts.
    pub call_ids: CallIds,
    /// Whether and how reasoning goes back.
    pub reasoning: ReasoningEcho,
    /// Whether what the server said about a call beyond its name and arguments goes back with it.
    pub echo_call_data: bool,
    /// Whether a tool message names its tool.
    pub tool_name: bool,
    /// Whether a tool message may hold pictures; otherwise a note stands in for them.
    pub tool_media: bool,
}

/// The content of an assistant message that has calls and no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoText {
    /// `"content": null`.
    Null,
    /// No `content` at all.
    Absent,
    /// `"content": ""`.
    Empty,
}

/// Which ids of calls a server accepts (Q69). Ids it would refuse are mapped when a message is written: the same id to the same
/// one, different ids to different ones; the transcript keeps its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallIds {
    /// Any.
    Any,
    /// At most 40 bytes.
    UpTo40,
    /// Exactly 9 letters and digits.
    NineAlphanumerics,
}

/// Whether and how reasoning goes back to the server (Q64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReasoningEcho {
    /// With which messages.
    pub when: EchoWhen,
    /// Under which name.
    pub field: ReasoningField,
}

/// With which assistant messages reasoning goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchoWhen {
    /// With none.
    Never,
    /// With those that call tools.
    WithCalls,
    /// With those that call tools, as an empty text if there was none: the server insists on the field.
    AlwaysWithCalls,
    /// With all that have some.
    Always,
}

/// Under which name reasoning goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningField {
    /// `reasoning_content`, a text.
    ReasoningContent,
    /// `reasoning`, a text.
    Reasoning,
    /// `reasoning_details`, with signatures, put together from the pieces in which they came; `reasoning` where there are none.
    Details,
}

/// What streamed text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextMode {
    /// What comes next.
    #[default]
    Increments,
    /// All of it so far, again in every event (Q70).
    Cumulative,
}
