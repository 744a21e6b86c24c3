//! Tests of `profile`.

use advisor_core::ChatModel as _;

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
fn schema_support_is_that_of_the_profile() {
    let mut own = Profile::compatible();
    own.schema_support = SchemaSupport::JsonSchema;
    assert_eq!(OpenAiModel::new("m").with_profile(own).schema_support(), SchemaSupport::JsonSchema);
    let local = OpenAiModel::new("m").with_base_url("http://localhost:1234/v1");
    assert_eq!(local.schema_support(), SchemaSupport::JsonSchemaWithoutTools);
}
