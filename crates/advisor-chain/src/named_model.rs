//! Models by name.

use std::sync::Arc;

use advisor_core::{ChatModel, Error, Result};

/// The names of the providers, and the feature of each.
const PROVIDERS: [(&str, &str); 5] = [
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("ollama", "ollama"),
    ("openai", "openai"),
    ("openai-responses", "openai"),
];

/// Returns a model by name, such as `anthropic:claude-sonnet-4-5` or `ollama:qwen3:8b`.
///
/// A name is the provider, a colon, and the provider's name of the model.
///
/// | provider | API | feature |
/// | --- | --- | --- |
/// | `anthropic` | Messages | `anthropic` |
/// | `gemini` | `streamGenerateContent` | `gemini` |
/// | `ollama` | Ollama's own | `ollama` |
/// | `openai` | Chat Completions, also of compatible servers | `openai` |
/// | `openai-responses` | Responses | `openai` |
///
/// Key and address come from the environment variables of the provider; `from_env` of its model lists them.
///
/// # Errors
/// Of kind [`Configuration`](crate::ErrorKind::Configuration) if the name has no provider, or if the provider is
/// unknown or its feature is off. The same kind if a variable that the provider needs is not set.
///
/// # Example
/// ```
/// let error = advisor_chain::model("gpt-5").err().unwrap();
/// assert!(error.to_string().contains("openai:gpt-5"), "{error}");
/// ```
#[cfg_attr(
    not(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai")),
    allow(unused_variables, reason = "without a provider no model is made")
)]
pub fn model(name: &str) -> Result<Arc<dyn ChatModel>> {
    let parts = name.split_once(':').map(|(provider, model)| (provider.trim(), model.trim()));
    let Some((provider, model)) = parts.filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
    else {
        return Err(Error::configuration(
            "a model is named by its provider and its own name, such as `openai:gpt-5`",
        ));
    };
    match provider {
        #[cfg(feature = "anthropic")]
        "anthropic" => Ok(Arc::new(provider_anthropic::AnthropicModel::from_env()?.with_model(model))),
        #[cfg(feature = "gemini")]
        "gemini" => Ok(Arc::new(provider_gemini::GeminiModel::from_env()?.with_model(model))),
        #[cfg(feature = "ollama")]
        "ollama" => Ok(Arc::new(provider_ollama::OllamaModel::from_env()?.with_model(model))),
        #[cfg(feature = "openai")]
        "openai" => Ok(Arc::new(provider_openai::OpenAiModel::from_env()?.with_model(model))),
        #[cfg(feature = "openai")]
        "openai-responses" => {
            Ok(Arc::new(provider_openai::OpenAiResponsesModel::from_env()?.with_model(model)))
        }
        other => Err(unavailable(other)),
    }
}

/// Returns the error for a provider without code in this build.
fn unavailable(provider: &str) -> Error {
    match PROVIDERS.iter().find(|(name, _)| *name == provider) {
        Some((_, feature)) => Error::configuration(format!(
            "the provider `{provider}` is not built in; enable the feature `{feature}` of `advisor-chain`"
        )),
        None => {
            let known = PROVIDERS.map(|(name, _)| name).join(", ");
            Error::configuration(format!("there is no provider `{provider}`; known are {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::ErrorKind;

    /// Returns the message of the error for this name.
    fn refused(name: &str) -> String {
        let error = model(name).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
        error.to_string()
    }

    #[test]
    fn names_without_provider_or_model_are_refused() {
        for name in ["", "gpt-5", ":gpt-5", "openai:", " : "] {
            assert!(refused(name).contains("such as `openai:gpt-5`"), "{name}");
        }
    }

    #[test]
    fn unknown_provider_is_refused_with_the_known_ones() {
        let message = refused("https://user:secret@llm.example");
        assert!(message.contains("no provider `https`") && message.contains("openai-responses"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }

    #[cfg(feature = "ollama")]
    #[test]
    fn model_name_may_contain_colons() {
        let model = model("ollama: qwen3:8b").unwrap();
        assert_eq!((model.name(), model.model_name()), ("ollama", Some("qwen3:8b")));
    }

    #[test]
    fn every_provider_is_built_in_or_names_its_feature() {
        for (provider, feature) in PROVIDERS {
            let Some(error) = model(&format!("{provider}:m")).err() else { continue };
            let message = error.to_string();
            let is_off = message.contains(&format!("enable the feature `{feature}`"));
            assert!(is_off || message.contains("_API_KEY"), "{provider}: {message}");
        }
    }
}
