//! The profiles of known servers.

use advisor_core::{SchemaSupport, Text};

use super::{
    Authorization, CallIds, EchoWhen, Endpoint, MaxTokensField, MessageRules, NamedTool, NoText, OptionRules,
    Profile, ReasoningEcho, ReasoningField, RequiredTool, SeedField, TextMode,
};

const OPTIONS: OptionRules = OptionRules {
    max_tokens: MaxTokensField::MaxTokens,
    seed: SeedField::Seed,
    required_tool: RequiredTool::Required,
    named_tool: NamedTool::Object,
    ask_stream_usage: true,
    // At gateways and hosts of many models it depends on the model; a format that is refused is worse than one in words.
    schema_support: SchemaSupport::None,
};

/// Of servers that hold the model to a grammar, which leaves it no way to call a tool.
const OPTIONS_WITH_GRAMMAR: OptionRules =
    OptionRules { schema_support: SchemaSupport::JsonSchemaWithoutTools, ..OPTIONS };

const MESSAGES: MessageRules = MessageRules {
    // Some refuse null, some refuse a missing content; the empty text is refused by the fewest (Q27).
    no_text: NoText::Empty,
    call_ids: CallIds::Any,
    reasoning: ReasoningEcho { when: EchoWhen::Never, field: ReasoningField::ReasoningContent },
    echo_call_data: true,
    tool_name: false,
    tool_media: false,
};

type MakeProfile = fn() -> Profile;

/// Whose servers stand under which domain.
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
    /// Any compatible server: the fields that all of them know.
    ///
    /// What the server said about a call goes back with it: Google's compatible endpoint refuses calls without their thought
    /// signatures (Q66).
    #[must_use]
    pub fn compatible() -> Self {
        Self::named("compatible", OPTIONS, MESSAGES)
    }

    /// OpenAI.
    #[must_use]
    pub fn openai() -> Self {
        // Reasoning models refuse max_tokens; ids beyond 40 characters are refused by all (Q69).
        let options = OptionRules {
            max_tokens: MaxTokensField::MaxCompletionTokens,
            schema_support: SchemaSupport::JsonSchema,
            ..OPTIONS
        };
        let messages = MessageRules {
            no_text: NoText::Null,
            call_ids: CallIds::UpTo40,
            echo_call_data: false,
            ..MESSAGES
        };
        Self::named("openai", options, messages)
    }

    /// Azure OpenAI under `https://RESOURCE.openai.azure.com/openai/v1`, where the model is named in the body.
    #[must_use]
    pub fn azure() -> Self {
        let name = Text::from("azure-openai");
        Self { name, authorization: Authorization::ApiKeyHeader, ..Self::openai() }
    }

    /// Azure OpenAI under `https://RESOURCE.openai.azure.com`, where the model is the deployment in the path.
    ///
    /// Versions before `2024-09-01-preview` refuse `stream_options`; set [`OptionRules::ask_stream_usage`] to false for them.
    #[must_use]
    pub fn azure_deployment(api_version: impl Into<Text>) -> Self {
        Self { endpoint: Endpoint::AzureDeployment { api_version: api_version.into() }, ..Self::azure() }
    }

    /// OpenRouter.
    #[must_use]
    pub fn openrouter() -> Self {
        // Signatures in reasoning_details must come back (Q63, Q66).
        let reasoning = ReasoningEcho { when: EchoWhen::Always, field: ReasoningField::Details };
        let messages = MessageRules { no_text: NoText::Null, reasoning, tool_media: true, ..MESSAGES };
        Self::named("openrouter", OPTIONS, messages)
    }

    /// Groq.
    #[must_use]
    pub fn groq() -> Self {
        // Refuses unknown fields in messages, reasoning among them (Q64).
        Self::named("groq", OPTIONS, MessageRules { echo_call_data: false, ..MESSAGES })
    }

    /// Mistral.
    #[must_use]
    pub fn mistral() -> Self {
        // Own words for options; unknown fields are refused; usage comes unasked (Q53); ids of exactly 9 characters (Q69).
        let options = OptionRules {
            seed: SeedField::RandomSeed,
            required_tool: RequiredTool::Any,
            ask_stream_usage: false,
            schema_support: SchemaSupport::JsonSchemaWithoutTools,
            ..OPTIONS
        };
        let messages = MessageRules {
            call_ids: CallIds::NineAlphanumerics,
            echo_call_data: false,
            tool_name: true,
            ..MESSAGES
        };
        Self::named("mistral", options, messages)
    }

    /// DeepSeek.
    #[must_use]
    pub fn deepseek() -> Self {
        // A thinking model refuses calls that come back without their reasoning_content, also where it was empty (Q64).
        let reasoning =
            ReasoningEcho { when: EchoWhen::AlwaysWithCalls, field: ReasoningField::ReasoningContent };
        let options = OptionRules { schema_support: SchemaSupport::JsonObject, ..OPTIONS };
        Self::named("deepseek", options, MessageRules { reasoning, ..MESSAGES })
    }

    /// xAI.
    #[must_use]
    pub fn xai() -> Self {
        // Beside tools only some models take a schema.
        let options = OptionRules { schema_support: SchemaSupport::JsonSchemaWithoutTools, ..OPTIONS };
        Self::named("xai", options, MESSAGES)
    }

    /// Together.
    #[must_use]
    pub fn together() -> Self {
        Self::named("together", OPTIONS, MESSAGES)
    }

    /// Ollama's compatible endpoint.
    #[must_use]
    pub fn ollama() -> Self {
        let reasoning = ReasoningEcho { when: EchoWhen::WithCalls, field: ReasoningField::Reasoning };
        Self::named("ollama", OPTIONS_WITH_GRAMMAR, MessageRules { reasoning, ..MESSAGES })
    }

    /// vLLM.
    #[must_use]
    pub fn vllm() -> Self {
        // Newer versions read `reasoning` and drop `reasoning_content` on the way in (Q63).
        let reasoning = ReasoningEcho { when: EchoWhen::WithCalls, field: ReasoningField::Reasoning };
        Self::named("vllm", OPTIONS_WITH_GRAMMAR, MessageRules { reasoning, tool_media: true, ..MESSAGES })
    }

    /// llama.cpp's server.
    #[must_use]
    pub fn llama_cpp() -> Self {
        let options = OptionRules { named_tool: NamedTool::OfferedAlone, ..OPTIONS_WITH_GRAMMAR };
        let reasoning = ReasoningEcho { when: EchoWhen::WithCalls, field: ReasoningField::ReasoningContent };
        Self::named("llama.cpp", options, MessageRules { reasoning, ..MESSAGES })
    }

    /// LM Studio.
    #[must_use]
    pub fn lm_studio() -> Self {
        Self::named("lm-studio", OPTIONS_WITH_GRAMMAR, MESSAGES)
    }

    /// The profile of the server at this base URL; [`Profile::compatible`] where the host tells nothing.
    ///
    /// Of local servers, those that listen on a port of their own by default are known: Ollama on 11434, LM Studio on 1234.
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

    fn named(name: &str, options: OptionRules, messages: MessageRules) -> Self {
        Self {
            name: name.into(),
            endpoint: Endpoint::ChatCompletions,
            authorization: Authorization::Bearer,
            options,
            messages,
            text: TextMode::Increments,
        }
    }
}
