//! The model and the server of the chat.

use std::io::{self, Write as _};
use std::sync::Arc;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::gemini::GeminiModel;
use advisor_chain::ollama::OllamaModel;
use advisor_chain::openai::OpenAiResponsesModel;
use advisor_chain::{ChatModel, Error, OpenAiModel, Result};
use clap::ValueEnum;

use super::waits::WaitNotes;

const UNENCRYPTED: &str = "the key crosses the network without encryption; use an https:// address";

/// The providers of the chat.
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

/// A server, and the name of its model.
pub(crate) struct Endpoint {
    pub(crate) server: Arc<dyn ChatModel>,
    pub(crate) model: String,
}

/// Returns the server of a provider: that of the environment, with the given base URL, if any. Without a key and a
/// server in the environment, a server that is named by its base URL needs no key.
macro_rules! server {
    ($model:ident, $base_url:ident, $notes:ident) => {
        match ($model::from_env(), $base_url) {
            (Ok(server), None) => checked!(server, $notes),
            (Ok(server), Some(base_url)) => checked!(server.with_base_url(base_url), $notes),
            (Err(_), Some(base_url)) => checked!($model::new("").with_base_url(base_url), $notes),
            (Err(error), None) => {
                Err(Error::configuration(format!("{error}; or name a server with --base-url URL")))
            }
        }
    };
}

macro_rules! checked {
    ($server:expr, $notes:ident) => {{
        let server = match $notes {
            Some(notes) => $server.with_wait_notice(move |error, wait| notes.note(error, wait)),
            None => $server,
        };
        if server.sends_secrets_unencrypted() {
            // A closed standard error does not stop the program.
            drop(writeln!(io::stderr(), "note: {UNENCRYPTED}"));
        }
        server.validate().map(|()| Arc::new(server) as Arc<dyn ChatModel>)
    }};
}

impl Provider {
    fn server(self, base_url: Option<String>, notes: Option<WaitNotes>) -> Result<Arc<dyn ChatModel>> {
        match self {
            Self::Openai => server!(OpenAiModel, base_url, notes),
            Self::OpenaiResponses => server!(OpenAiResponsesModel, base_url, notes),
            Self::Anthropic => server!(AnthropicModel, base_url, notes),
            Self::Gemini => server!(GeminiModel, base_url, notes),
            Self::Ollama => server!(OllamaModel, base_url, notes),
        }
    }

    /// Returns the variable that names the model.
    fn model_variable(self) -> &'static str {
        match self {
            Self::Openai | Self::OpenaiResponses => "OPENAI_MODEL",
            Self::Anthropic => "ANTHROPIC_MODEL",
            Self::Gemini => "GEMINI_MODEL",
            Self::Ollama => "OLLAMA_MODEL",
        }
    }
}

impl Endpoint {
    /// Reads the command line first, then the environment. Waits of the model are noted in `notes`.
    ///
    /// # Errors
    /// Names everything that is missing.
    pub(crate) fn find(
        provider: Provider,
        model: Option<String>,
        base_url: Option<String>,
        notes: Option<WaitNotes>,
    ) -> Result<Self> {
        let variable = provider.model_variable();
        let model = first_of([model, std::env::var(variable).ok()])
            .ok_or_else(|| format!("no model is named: give --model NAME or set {variable}"));
        match (provider.server(first_of([base_url]), notes), model) {
            (Ok(server), Ok(model)) => Ok(Self { server, model }),
            (Err(error), Ok(_)) => Err(error),
            (Ok(_), Err(no_model)) => Err(Error::configuration(no_model)),
            (Err(error), Err(no_model)) => Err(Error::configuration(format!("{no_model}\n       {error}"))),
        }
    }
}

/// Returns the first text that is not blank, trimmed.
fn first_of<const N: usize>(texts: [Option<String>; N]) -> Option<String> {
    texts.into_iter().flatten().map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_model_overrides_environment_model() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(first_of([some("a"), some("b")]), some("a"));
        assert_eq!(first_of([None, some(" b\n")]), some("b"));
        assert_eq!(first_of([some(""), some("b")]), some("b"));
        assert_eq!(first_of([None, some(" ")]), None);
    }
}
