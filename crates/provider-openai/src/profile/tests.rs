//! Tests of `profile`.

use advisor_core::ChatModel as _;
use http::HeaderName;
use provider_http::names::IdRule;

use super::*;
use crate::OpenAiModel;

#[test]
fn hosts_choose_profiles() {
    let cases = [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://my-resource.openai.azure.com/openai/v1", "azure-openai"),
        ("https://r.services.ai.azure.com/openai/v1", "azure-openai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://API.MISTRAL.AI/v1", "mistral"),
        ("https://codestral.mistral.ai/v1", "mistral"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.x.ai/v1", "xai"),
        ("https://api.together.xyz/v1", "together"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://[::1]:1234/v1", "lm-studio"),
        ("http://127.0.0.1:8080/v1", "compatible"),
        ("https://remote.example:11434/v1", "compatible"),
        // Only whole labels of a host count.
        ("https://notopenai.com/v1", "compatible"),
        ("https://openai.com.evil.example/v1", "compatible"),
        ("https://max.ai/v1", "compatible"),
        ("no url", "compatible"),
    ];
    for (base_url, name) in cases {
        assert_eq!(Profile::for_base_url(base_url).name, *name, "{base_url}");
    }
}

#[test]
fn every_profile_has_a_name_of_its_own() {
    let profiles = [
        Profile::compatible(),
        Profile::openai(),
        Profile::azure(),
        Profile::openrouter(),
        Profile::groq(),
        Profile::mistral(),
        Profile::deepseek(),
        Profile::xai(),
        Profile::together(),
        Profile::ollama(),
        Profile::vllm(),
        Profile::llama_cpp(),
        Profile::lm_studio(),
    ];
    let names: std::collections::HashSet<_> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names.len(), profiles.len());
}

#[test]
fn known_quirks_are_in_the_profiles() {
    // Q69
    assert_eq!(Profile::mistral().messages.call_ids, IdRule::Alphanumeric(9));
    assert_eq!(Profile::openai().messages.call_ids, IdRule::UpTo(40));
    assert_eq!(Profile::compatible().messages.call_ids, IdRule::Any);
    // Q53
    assert!(!Profile::mistral().options.asks_stream_usage);
    // Q64
    let echo = |scope, field| ReasoningEcho { scope, field };
    assert_eq!(
        Profile::deepseek().messages.reasoning,
        echo(EchoScope::AlwaysWithCalls, ReasoningField::ReasoningContent)
    );
    assert_eq!(Profile::openrouter().messages.reasoning, echo(EchoScope::Always, ReasoningField::Details));
    assert_eq!(Profile::vllm().messages.reasoning, echo(EchoScope::WithCalls, ReasoningField::Reasoning));
    assert_eq!(Profile::groq().messages.reasoning.scope, EchoScope::Never);
    assert!(!Profile::groq().messages.echoes_call_data);
    // Q65
    for profile in [Profile::vllm(), Profile::llama_cpp(), Profile::lm_studio()] {
        assert_eq!(profile.think_tags, ThinkTags::Leading);
    }
    assert_eq!(Profile::compatible().think_tags, ThinkTags::AsText);
    // Azure: the header, and the deployment in the path.
    assert_eq!(Profile::azure().authorization, Authorization::Header(HeaderName::from_static("api-key")));
    assert_eq!(Profile::azure().endpoint, Endpoint::ChatCompletions);
    let api_version = "2024-10-21";
    assert_eq!(
        Profile::azure_deployment(api_version).endpoint,
        Endpoint::AzureDeployment { api_version: api_version.into() }
    );
    assert_eq!(Profile::ollama().messages.no_text, NoText::Empty);
    // Schema support.
    let support = |profile: Profile| profile.options.schema_support;
    for profile in [Profile::compatible(), Profile::openrouter(), Profile::groq(), Profile::together()] {
        assert_eq!(support(profile), SchemaSupport::None);
    }
    assert_eq!(support(Profile::deepseek()), SchemaSupport::JsonObject);
    for profile in [Profile::mistral(), Profile::xai(), Profile::ollama(), Profile::vllm()] {
        assert_eq!(support(profile), SchemaSupport::JsonSchemaWithoutTools);
    }
    for profile in [Profile::llama_cpp(), Profile::lm_studio()] {
        assert_eq!(support(profile), SchemaSupport::JsonSchemaWithoutTools);
    }
    assert_eq!(support(Profile::openai()), SchemaSupport::JsonSchema);
    assert_eq!(support(Profile::azure()), SchemaSupport::JsonSchema);
    let mut own = Profile::compatible();
    own.options.schema_support = SchemaSupport::JsonSchema;
    assert_eq!(OpenAiModel::new("m").with_profile(own).schema_support(), SchemaSupport::JsonSchema);
}
