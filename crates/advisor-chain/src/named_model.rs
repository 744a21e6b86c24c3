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
/// Key and address come from the environment variables of the provider; `from_env` of its model lists them. For another
/// address use [`model_at`]. Other services with the API of OpenAI, such as Mistral or Groq, are `openai` at their
/// address; the host selects the profile.
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
pub fn model(name: &str) -> Result<Arc<dyn ChatModel>> {
    named(name, None)
}

/// Returns a model by name, as [`model`] does, at a server with this base URL, such as `http://127.0.0.1:8080/v1`.
///
/// The key comes from the environment variable of the provider if it is set, and is sent to this server. A server
/// without a key needs none. The variable of the base URL is not read.
///
/// # Errors
/// Of kind [`Configuration`](crate::ErrorKind::Configuration) as for [`model`], except that no variable must be set.
/// The same kind if the base URL or the key cannot be used.
///
/// # Example
/// ```
/// # fn main() -> advisor_chain::Result<()> {
/// let model = advisor_chain::model_at("openai:qwen3", "http://127.0.0.1:8080/v1")?;
/// assert_eq!(model.model_name(), Some("qwen3"));
/// assert!(advisor_chain::model_at("openai:qwen3", "127.0.0.1").is_err());
/// # Ok(()) }
/// ```
pub fn model_at(name: &str, base_url: &str) -> Result<Arc<dyn ChatModel>> {
    named(name, Some(base_url))
}

/// Makes a model of this type at a base URL, or at that of the environment.
#[cfg(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai"))]
macro_rules! made {
    ($type:ty, $model:expr, $base_url:expr) => {{
        let made = match $base_url {
            Some(base_url) => <$type>::from_env_at(base_url),
            None => <$type>::from_env(),
        };
        Ok(Arc::new(made?.with_model($model)))
    }};
}

#[cfg_attr(
    not(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai")),
    allow(unused_variables, reason = "without a provider no model is made")
)]
fn named(name: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatModel>> {
    let parts = name.split_once(':').map(|(provider, model)| (provider.trim(), model.trim()));
    let Some((provider, model)) = parts.filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
    else {
        return Err(Error::configuration(
            "a model is named by its provider and its own name, such as `openai:gpt-5`",
        ));
    };
    match provider {
        #[cfg(feature = "anthropic")]
        "anthropic" => made!(provider_anthropic::AnthropicModel, model, base_url),
        #[cfg(feature = "gemini")]
        "gemini" => made!(provider_gemini::GeminiModel, model, base_url),
        #[cfg(feature = "ollama")]
        "ollama" => made!(provider_ollama::OllamaModel, model, base_url),
        #[cfg(feature = "openai")]
        "openai" => made!(provider_openai::OpenAiModel, model, base_url),
        #[cfg(feature = "openai")]
        "openai-responses" => made!(provider_openai::OpenAiResponsesModel, model, base_url),
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
            Error::configuration(format!(
                "there is no provider `{provider}`; known are {known}. For another server with the API of OpenAI, \
                 use `model_at(\"openai:…\", url)`"
            ))
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

    #[test]
    fn unknown_provider_is_pointed_to_compatible_servers() {
        let message = refused("mistral:large");
        assert!(message.contains("no provider `mistral`"), "{message}");
        assert!(message.contains("use `model_at(\"openai:…\", url)`"), "{message}");
    }

    #[cfg(feature = "ollama")]
    #[test]
    fn model_name_may_contain_colons() {
        let model = model("ollama: qwen3:8b").unwrap();
        assert_eq!((model.name(), model.model_name()), ("ollama", Some("qwen3:8b")));
    }

    #[test]
    fn every_provider_may_be_at_a_base_url() {
        for (provider, feature) in PROVIDERS {
            let name = format!("{provider}:m");
            match model_at(&name, "http://127.0.0.1:8080/v1") {
                Ok(model) => assert_eq!(model.model_name(), Some("m"), "{provider}"),
                Err(error) => assert!(error.to_string().contains(&format!("enable the feature `{feature}`"))),
            }
            let error = model_at(&name, "ftp://user:secret@llm.example").err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{provider}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
        assert!(model_at("m", "http://127.0.0.1").is_err());
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
