//! The profiles of known servers.

use advisor_core::{SchemaSupport, Text};
use http::HeaderName;
use provider_http::names::IdRule;
use provider_http::server::Authorization;

use super::{
    EchoScope, Endpoint, MessageRules, NamedTool, NoText, OptionRules, Profile, ReasoningEcho,
    ReasoningField, ThinkTags,
};

const OPTIONS: OptionRules = OptionRules {
    max_tokens: "max_tokens",
    seed: "seed",
    required_tool: "required",
    named_tool: NamedTool::Object,
    asks_stream_usage: true,
    // At gateways and hosts of many models it depends on the model. A refused format is worse than a format in
    // words.
    schema_support: SchemaSupport::None,
};

/// Options of servers that constrain the model to a grammar, which leaves it no way to call a tool.
const OPTIONS_WITH_GRAMMAR: OptionRules =
    OptionRules { schema_support: SchemaSupport::JsonSchemaWithoutTools, ..OPTIONS };

const MESSAGES: MessageRules = MessageRules {
    // Some refuse null, some refuse missing content; the fewest refuse the empty text (Q27).
    no_text: NoText::Empty,
    call_ids: IdRule::Any,
    reasoning: ReasoningEcho { scope: EchoScope::Never, field: ReasoningField::ReasoningContent },
    echoes_call_data: true,
    sends_tool_name: false,
    sends_tool_media: false,
};

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
        Self::named("compatible", OPTIONS, MESSAGES)
    }

    /// Returns the profile of OpenAI.
    #[must_use]
    pub fn openai() -> Self {
        // Reasoning models refuse max_tokens; all models refuse ids beyond 40 characters (Q69).
        let options = OptionRules {
            max_tokens: "max_completion_tokens",
            schema_support: SchemaSupport::JsonSchema,
            ..OPTIONS
        };
        let messages = MessageRules {
            no_text: NoText::Null,
            call_ids: IdRule::UpTo(40),
            echoes_call_data: false,
            ..MESSAGES
        };
        Self::named("openai", options, messages)
    }

    /// Returns the profile of Azure OpenAI under `https://RESOURCE.openai.azure.com/openai/v1`, where the body
    /// names the model.
    #[must_use]
    pub fn azure() -> Self {
        let name = Text::from("azure-openai");
        let authorization = Authorization::Header(HeaderName::from_static("api-key"));
        Self { name, authorization, ..Self::openai() }
    }

    /// Returns the profile of Azure OpenAI under `https://RESOURCE.openai.azure.com`, where the deployment in
    /// the path names the model.
    ///
    /// Versions before `2024-09-01-preview` refuse `stream_options`; set [`OptionRules::asks_stream_usage`] to
    /// false for them.
    #[must_use]
    pub fn azure_deployment(api_version: impl Into<Text>) -> Self {
        Self { endpoint: Endpoint::AzureDeployment { api_version: api_version.into() }, ..Self::azure() }
    }

    /// Returns the profile of OpenRouter.
    #[must_use]
    pub fn openrouter() -> Self {
        // Signatures in reasoning_details must be sent back (Q63, Q66).
        let reasoning = ReasoningEcho { scope: EchoScope::Always, field: ReasoningField::Details };
        let messages = MessageRules { no_text: NoText::Null, reasoning, sends_tool_media: true, ..MESSAGES };
        Self::named("openrouter", OPTIONS, messages)
    }

    /// Returns the profile of Groq.
    #[must_use]
    pub fn groq() -> Self {
        // Groq refuses unknown fields in messages, reasoning among them (Q64).
        Self::named("groq", OPTIONS, MessageRules { echoes_call_data: false, ..MESSAGES })
    }

    /// Returns the profile of Mistral.
    #[must_use]
    pub fn mistral() -> Self {
        // Mistral has its own option names, refuses unknown fields, and sends usage unasked (Q53). Call ids
        // have exactly 9 characters (Q69).
        let options = OptionRules {
            seed: "random_seed",
            required_tool: "any",
            asks_stream_usage: false,
            schema_support: SchemaSupport::JsonSchemaWithoutTools,
            ..OPTIONS
        };
        let messages = MessageRules {
            call_ids: IdRule::Alphanumeric(9),
            echoes_call_data: false,
            sends_tool_name: true,
            ..MESSAGES
        };
        Self::named("mistral", options, messages)
    }

    /// Returns the profile of DeepSeek.
    #[must_use]
    pub fn deepseek() -> Self {
        // A thinking model refuses calls sent back without their reasoning_content, even if it was empty (Q64).
        let reasoning =
            ReasoningEcho { scope: EchoScope::AlwaysWithCalls, field: ReasoningField::ReasoningContent };
        let options = OptionRules { schema_support: SchemaSupport::JsonObject, ..OPTIONS };
        Self::named("deepseek", options, MessageRules { reasoning, ..MESSAGES })
    }

    /// Returns the profile of xAI.
    #[must_use]
    pub fn xai() -> Self {
        // Only some models accept a schema beside tools.
        let options = OptionRules { schema_support: SchemaSupport::JsonSchemaWithoutTools, ..OPTIONS };
        Self::named("xai", options, MESSAGES)
    }

    /// Returns the profile of Together.
    #[must_use]
    pub fn together() -> Self {
        Self::named("together", OPTIONS, MESSAGES)
    }

    /// Returns the profile of Ollama's compatible endpoint.
    #[must_use]
    pub fn ollama() -> Self {
        let reasoning = ReasoningEcho { scope: EchoScope::WithCalls, field: ReasoningField::Reasoning };
        Self::named("ollama", OPTIONS_WITH_GRAMMAR, MessageRules { reasoning, ..MESSAGES })
    }

    /// Returns the profile of vLLM.
    #[must_use]
    pub fn vllm() -> Self {
        // Newer versions read `reasoning` and drop `reasoning_content` from requests (Q63).
        let reasoning = ReasoningEcho { scope: EchoScope::WithCalls, field: ReasoningField::Reasoning };
        let messages = MessageRules { reasoning, sends_tool_media: true, ..MESSAGES };
        Self::named("vllm", OPTIONS_WITH_GRAMMAR, messages).with_leading_think_tags()
    }

    /// Returns the profile of llama.cpp's server.
    #[must_use]
    pub fn llama_cpp() -> Self {
        let options = OptionRules { named_tool: NamedTool::OfferedAlone, ..OPTIONS_WITH_GRAMMAR };
        let reasoning =
            ReasoningEcho { scope: EchoScope::WithCalls, field: ReasoningField::ReasoningContent };
        Self::named("llama.cpp", options, MessageRules { reasoning, ..MESSAGES }).with_leading_think_tags()
    }

    /// Returns the profile of LM Studio.
    #[must_use]
    pub fn lm_studio() -> Self {
        Self::named("lm-studio", OPTIONS_WITH_GRAMMAR, MESSAGES).with_leading_think_tags()
    }

    /// Returns the profile of the server at this base URL; [`Profile::compatible`] if the host is unknown.
    ///
    /// Local servers are known by their default ports: Ollama by 11434, LM Studio by 1234.
    ///
    /// ```
    /// use provider_openai::Profile;
    ///
    /// assert_eq!(Profile::for_base_url("https://api.groq.com/openai/v1"), Profile::groq());
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

    /// Reads leading tags: these servers leave reasoning in the text unless they are started with a parser for it (Q65).
    fn with_leading_think_tags(self) -> Self {
        Self { think_tags: ThinkTags::Leading, ..self }
    }

    fn named(name: &str, options: OptionRules, messages: MessageRules) -> Self {
        Self {
            name: name.into(),
            endpoint: Endpoint::ChatCompletions,
            authorization: Authorization::Bearer,
            options,
            messages,
            think_tags: ThinkTags::AsText,
            eager_calls: false,
        }
    }
}
