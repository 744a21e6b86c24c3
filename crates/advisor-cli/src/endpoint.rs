//! The model that `chat` and `serve` ask.

use std::sync::Arc;

use advisor_chain::{ChatModel, Error, Result};
use clap::ValueEnum;

/// The providers, by their names in [`advisor_chain::model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Chat Completions of OpenAI or a compatible server.
    Openai,
    /// The Responses API of OpenAI.
    OpenaiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// Gemini of Google.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl Provider {
    /// Finds a model. Reads the command line first, then the environment.
    ///
    /// # Errors
    /// Names everything that is missing.
    pub(crate) fn model(self, model: Option<String>, base_url: Option<String>) -> Result<Arc<dyn ChatModel>> {
        let provider = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let vendor = provider.split('-').next().unwrap_or_default().to_uppercase();
        let variable = format!("{vendor}_MODEL");
        let model = given(model).or_else(|| given(std::env::var(&variable).ok()));
        // Without a name, the server is looked for all the same, so that both can be named in one error.
        let name = format!("{provider}:{}", model.as_deref().unwrap_or("unnamed"));
        let found = match given(base_url) {
            Some(base_url) => advisor_chain::model_at(&name, &base_url),
            None => advisor_chain::model(&name).map_err(|error| {
                Error::configuration(format!("{error}; or name a server with --base-url URL"))
            }),
        };
        if model.is_some() {
            return found;
        }
        let no_model = format!("no model is named: give --model NAME or set {variable}");
        Err(Error::configuration(match found {
            Ok(_) => no_model,
            Err(error) => format!("{no_model}\n       {error}"),
        }))
    }
}

/// Returns a text that is not blank, trimmed.
fn given(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
