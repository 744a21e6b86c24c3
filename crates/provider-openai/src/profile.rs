//! Differences between servers, as plain data.
//!
//! The caller chooses a [`Profile`], or [`Profile::for_base_url`] selects one from the host. A profile holds
//! values only; the code that reads them is the same for all servers. The numbers Q1, Q2, … in this crate name
//! quirks of real servers. `tests/wire/quirks/README.md` lists them with their sources.

#[cfg(test)]
mod tests;

use advisor_core::{Result, SchemaSupport, Text};
use bytes::Bytes;
use http::HeaderName;
use provider_http::names::IdRule;
use provider_http::server::{Authorization, Call, Server, path_segment};

/// The requirements and behaviour of a server that differ from those of others.
///
/// ```
/// use provider_openai::Profile;
///
/// let mut profile = Profile::compatible();
/// profile.max_tokens = "max_completion_tokens";
/// assert_eq!(profile.name, "compatible");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The server's name in traces, such as `openai`.
    pub name: Text,
    /// The version of Azure's API, for a path that names the deployment:
    /// `/openai/deployments/MODEL/chat/completions?api-version=VERSION`. `None`: the path is `/chat/completions`.
    pub azure_api_version: Option<Text>,
    /// The header that carries the key.
    pub authorization: Authorization,
    /// The field for the maximum number of answer tokens: `max_tokens`, or `max_completion_tokens`, which
    /// reasoning models of OpenAI require.
    pub max_tokens: &'static str,
    /// The field for the seed, such as `seed`.
    pub seed: &'static str,
    /// The tool choice that means "at least one tool", such as `required`.
    pub required_tool: &'static str,
    /// Whether one particular tool is asked for by offering it alone, with at least one call required. Such a server
    /// treats the object that names a tool as "auto".
    pub offers_named_tool_alone: bool,
    /// Whether to ask for usage in a stream. Servers that refuse unknown fields send it anyway.
    pub asks_stream_usage: bool,
    /// The part of a schema that the server enforces on a streamed answer, whichever model answers.
    pub schema_support: SchemaSupport,
    /// Whether the content of an assistant message that has calls and no text is `null`; otherwise it is the empty text.
    pub null_without_text: bool,
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
    /// The meaning of `<think>` tags in the text.
    pub think_tags: ThinkTags,
}

/// Whether and how reasoning is sent back to the server (Q64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningEcho {
    /// It is not.
    Never,
    /// As `reasoning_content`, with messages that call tools.
    ReasoningContent,
    /// As `reasoning_content`, with messages that call tools. Without reasoning the text is empty, because the server
    /// requires the field.
    RequiredReasoningContent,
    /// As `reasoning`, with messages that call tools.
    Reasoning,
    /// As `reasoning_details`, with signatures, joined from the pieces that arrived; as `reasoning` if there are none.
    /// With all messages.
    Details,
}

/// The meaning of `<think>` and `</think>` in the text (Q65).
///
/// Servers that do not separate reasoning leave it at the beginning of the text, between these tags. The tags are left
/// out, and so is the white space after the closing one. Reasoning that also comes in a separate field counts once.
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

type MakeProfile = fn() -> Profile;

/// The profile for each domain.
const DOMAINS: [(&str, MakeProfile); 12] = [
    ("openai.azure.com", Profile::azure),
    ("services.ai.azure.com", Profile::azure),
    ("cognitiveservices.azure.com", Profile::azure),
    ("openai.com", Profile::openai),
    ("openrouter.ai", Profile::openrouter),
    ("groq.com", Profile::groq),
    ("mistral.ai", Profile::mistral),
    ("deepseek.com", Profile::deepseek),
    ("x.ai", Profile::xai),
    ("together.xyz", Profile::together),
    ("together.ai", Profile::together),
    ("ollama.com", Profile::ollama),
];

impl Profile {
    /// Returns the profile of any compatible server: only fields that all of them know.
    ///
    /// Data that the server attached to a call is sent back with it. Google's compatible endpoint refuses calls
    /// without their thought signatures (Q66).
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            name: "compatible".into(),
            azure_api_version: None,
            authorization: Authorization::Bearer,
            max_tokens: "max_tokens",
            seed: "seed",
            required_tool: "required",
            offers_named_tool_alone: false,
            asks_stream_usage: true,
            // At gateways and hosts of many models it depends on the model. A refused format is worse than a format in
            // words.
            schema_support: SchemaSupport::None,
            // Some refuse null, some refuse missing content; the fewest refuse the empty text (Q27).
            null_without_text: false,
            call_ids: IdRule::Any,
            reasoning: ReasoningEcho::Never,
            echoes_call_data: true,
            sends_tool_name: false,
            sends_tool_media: false,
            think_tags: ThinkTags::AsText,
        }
    }

    /// Returns the profile of OpenAI.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            name: "openai".into(),
            // Reasoning models refuse max_tokens; all models refuse ids beyond 40 characters (Q69).
            max_tokens: "max_completion_tokens",
            schema_support: SchemaSupport::JsonSchema,
            null_without_text: true,
            call_ids: IdRule::UpTo(40),
            echoes_call_data: false,
            ..Self::compatible()
        }
    }

    /// Azure OpenAI under `https://RESOURCE.openai.azure.com/openai/v1`, where the body names the model.
    fn azure() -> Self {
        let authorization = Authorization::Header(HeaderName::from_static("api-key"));
        Self { name: "azure-openai".into(), authorization, ..Self::openai() }
    }

    /// Returns the profile of Azure OpenAI under `https://RESOURCE.openai.azure.com`, where the deployment in
    /// the path names the model.
    ///
    /// Versions before `2024-09-01-preview` refuse `stream_options`; set
    /// [`asks_stream_usage`](Self::asks_stream_usage) to false for them.
    #[must_use]
    pub fn azure_deployment(api_version: impl Into<Text>) -> Self {
        Self { azure_api_version: Some(api_version.into()), ..Self::azure() }
    }

    pub(crate) fn openrouter() -> Self {
        Self {
            name: "openrouter".into(),
            null_without_text: true,
            // Signatures in reasoning_details must be sent back (Q63, Q66).
            reasoning: ReasoningEcho::Details,
            sends_tool_media: true,
            ..Self::compatible()
        }
    }

    pub(crate) fn groq() -> Self {
        // Groq refuses unknown fields in messages, reasoning among them (Q64).
        Self { name: "groq".into(), echoes_call_data: false, ..Self::compatible() }
    }

    pub(crate) fn mistral() -> Self {
        // Mistral has its own option names, refuses unknown fields, and sends usage unasked (Q53). Call ids
        // have exactly 9 characters (Q69).
        Self {
            name: "mistral".into(),
            seed: "random_seed",
            required_tool: "any",
            asks_stream_usage: false,
            schema_support: SchemaSupport::JsonSchemaWithoutTools,
            call_ids: IdRule::Alphanumeric(9),
            echoes_call_data: false,
            sends_tool_name: true,
            ..Self::compatible()
        }
    }

    fn deepseek() -> Self {
        Self {
            name: "deepseek".into(),
            schema_support: SchemaSupport::JsonObject,
            // A thinking model refuses calls sent back without their reasoning_content, even if it was empty (Q64).
            reasoning: ReasoningEcho::RequiredReasoningContent,
            ..Self::compatible()
        }
    }

    fn xai() -> Self {
        // Only some models accept a schema beside tools.
        let schema_support = SchemaSupport::JsonSchemaWithoutTools;
        Self { name: "xai".into(), schema_support, ..Self::compatible() }
    }

    fn together() -> Self {
        Self { name: "together".into(), ..Self::compatible() }
    }

    /// Returns the profile of Ollama's compatible endpoint.
    #[must_use]
    pub fn ollama() -> Self {
        Self { reasoning: ReasoningEcho::Reasoning, ..Self::with_grammar("ollama") }
    }

    /// Returns the profile of vLLM.
    #[must_use]
    pub fn vllm() -> Self {
        Self {
            // Newer versions read `reasoning` and drop `reasoning_content` from requests (Q63).
            reasoning: ReasoningEcho::Reasoning,
            sends_tool_media: true,
            think_tags: ThinkTags::Leading,
            ..Self::with_grammar("vllm")
        }
    }

    /// Returns the profile of llama.cpp's server.
    #[must_use]
    pub fn llama_cpp() -> Self {
        Self {
            offers_named_tool_alone: true,
            reasoning: ReasoningEcho::ReasoningContent,
            think_tags: ThinkTags::Leading,
            ..Self::with_grammar("llama.cpp")
        }
    }

    fn lm_studio() -> Self {
        Self { think_tags: ThinkTags::Leading, ..Self::with_grammar("lm-studio") }
    }

    /// A server that constrains the model to a grammar, which leaves it no way to call a tool. Unless started with a parser
    /// for it, most such servers leave reasoning in the text (Q65).
    fn with_grammar(name: &str) -> Self {
        let schema_support = SchemaSupport::JsonSchemaWithoutTools;
        Self { name: name.into(), schema_support, ..Self::compatible() }
    }

    /// Returns the profile of the server at this base URL; [`Profile::compatible`] if the host is unknown. It knows
    /// Azure OpenAI, DeepSeek, Groq, Mistral, Ollama, OpenAI, OpenRouter, Together and xAI.
    ///
    /// Local servers are known by their default ports: Ollama by 11434, LM Studio by 1234. A model whose server is at another
    /// address gets such a profile by `with_profile`.
    ///
    /// ```
    /// use provider_openai::Profile;
    ///
    /// assert_eq!(Profile::for_base_url("https://api.groq.com/openai/v1").name, "groq");
    /// assert_eq!(Profile::for_base_url("http://localhost:11434/v1"), Profile::ollama());
    /// assert_eq!(Profile::for_base_url("https://llm.example/v1"), Profile::compatible());
    /// ```
    #[must_use]
    pub fn for_base_url(base_url: &str) -> Self {
        let Ok(url) = base_url.parse::<http::Uri>() else {
            return Self::compatible();
        };
        let host = url.host().unwrap_or_default().to_ascii_lowercase();
        let local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        match url.port_u16() {
            Some(11434) if local => return Self::ollama(),
            Some(1234) if local => return Self::lm_studio(),
            _ => {}
        }
        let known = DOMAINS.iter().find(|(domain, _)| {
            host == *domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
        });
        known.map_or_else(Self::compatible, |(_, profile)| profile())
    }

    /// Returns the call with this body to a path of the API. At Azure, it names the model.
    pub(crate) fn call(&self, server: &Server, model: &str, path: &str, body: Bytes) -> Result<Call> {
        match &self.azure_api_version {
            Some(version) => {
                let path = format!("/openai/deployments/{}{path}", path_segment(model));
                server.call(&path, &[("api-version", version)], body)
            }
            None => server.call(path, &[], body),
        }
    }
}
