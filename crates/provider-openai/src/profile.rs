//! Differences between servers, as plain data.
//!
//! The caller chooses a [`Profile`], or [`Profile::for_base_url`] selects one from the host. A profile holds
//! values only; the code that reads them is the same for all servers. The numbers Q1, Q2, … in this crate name
//! quirks of real servers. `tests/wire/quirks/README.md` lists them with their sources.

mod servers;
#[cfg(test)]
mod tests;

use advisor_core::{SchemaSupport, Text};
use provider_http::names::IdRule;
use provider_http::server::Authorization;

/// The requirements and behaviour of a server that differ from those of others.
///
/// ```
/// use provider_openai::Profile;
///
/// let mut profile = Profile::compatible();
/// profile.options.max_tokens = "max_completion_tokens";
/// assert_eq!(profile.name, "compatible");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The server's name in traces, such as `openai`.
    pub name: Text,
    /// The path of requests, relative to the base URL.
    pub endpoint: Endpoint,
    /// The header that carries the key.
    pub authorization: Authorization,
    /// The rules for options.
    pub options: OptionRules,
    /// The rules for messages.
    pub messages: MessageRules,
    /// The meaning of `<think>` tags in the text.
    pub think_tags: ThinkTags,
    /// Whether a call is complete when the next block begins, unless the options of a request say otherwise. Correct
    /// only for servers that never interleave blocks.
    pub eager_calls: bool,
}

/// The path of requests, relative to the base URL.
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

/// The rules for options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionRules {
    /// The field for the maximum number of answer tokens: `max_tokens`, or `max_completion_tokens`, which
    /// reasoning models of OpenAI require.
    pub max_tokens: &'static str,
    /// The field for the seed, such as `seed`.
    pub seed: &'static str,
    /// The tool choice that means "at least one tool", such as `required`.
    pub required_tool: &'static str,
    /// The way to ask for one particular tool.
    pub named_tool: NamedTool,
    /// Whether to ask for usage in a stream. Servers that refuse unknown fields send it anyway.
    pub asks_stream_usage: bool,
    /// The part of a schema that the server enforces on a streamed answer, whichever model answers.
    pub schema_support: SchemaSupport,
}

/// The way to ask for one particular tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedTool {
    /// An object that names the tool.
    Object,
    /// The tool is offered alone, and at least one call is required. Such a server treats the object as "auto".
    OfferedAlone,
}

/// The rules for messages. The wire form of a message depends on nothing else, so it is kept per set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageRules {
    /// The content of an assistant message that has calls and no text.
    pub no_text: NoText,
    /// The call ids that the server accepts (Q69). The transcript keeps the original ids.
    pub call_ids: IdRule,
    /// Whether and how reasoning is sent back.
    pub reasoning: ReasoningEcho,
    /// Whether data that the server attached to a call, beyond name and arguments, is sent back with the call.
    pub echoes_call_data: bool,
    /// Whether a tool message names its tool.
    pub sends_tool_name: bool,
    /// Whether a tool message may hold media; otherwise a note replaces them.
    pub sends_tool_media: bool,
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

/// Whether and how reasoning is sent back to the server (Q64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReasoningEcho {
    /// The messages with which reasoning is sent back.
    pub scope: EchoScope,
    /// The field that holds the reasoning.
    pub field: ReasoningField,
}

/// The assistant messages with which reasoning is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchoScope {
    /// None.
    Never,
    /// Messages that call tools.
    WithCalls,
    /// Messages that call tools. Without reasoning the text is empty, because the server requires the field.
    AlwaysWithCalls,
    /// All messages that have reasoning.
    Always,
}

/// The field that holds the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningField {
    /// `reasoning_content`, a text.
    ReasoningContent,
    /// `reasoning`, a text.
    Reasoning,
    /// `reasoning_details`, with signatures, joined from the pieces that arrived; `reasoning` if there are
    /// none.
    Details,
}

/// The meaning of `<think>` and `</think>` in the text (Q65).
///
/// Servers that do not separate reasoning leave it at the beginning of the text, between these tags. The tags are left
/// out, and so is the white space after the closing one. Reasoning that also comes in a separate field counts once.
/// For other tags, or tags anywhere in the text, use an advisor such as `TextToolCalls::with_thinking` of the crate
/// `text-tool-calls`.
///
/// ```
/// use provider_openai::{Profile, ThinkTags};
///
/// let mut profile = Profile::compatible();
/// profile.think_tags = ThinkTags::Leading;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkTags {
    /// None: all text is text.
    #[default]
    AsText,
    /// A text that begins with `<think>` is reasoning up to `</think>`, or to its end.
    Leading,
    /// A text is reasoning up to `</think>`, or to its end, with or without `<think>`. Such a server ends the prompt
    /// with `<think>`, so that the answer does not repeat it.
    OpenedByPrompt,
}
