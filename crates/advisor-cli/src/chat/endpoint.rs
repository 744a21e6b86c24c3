//! The model and the server of the chat.

use advisor_chain::{Error, OpenAiModel, Result};

/// A server, and the name of its model.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: OpenAiModel,
    pub(super) model: String,
}

impl Endpoint {
    /// Reads the command line first, then the environment.
    pub(super) fn find(model: Option<String>, base_url: Option<String>) -> Result<Self> {
        let model = first_of([model, std::env::var("OPENAI_MODEL").ok()]);
        let server = match (OpenAiModel::from_env().ok(), first_of([base_url])) {
            (Some(server), Some(base_url)) => Some(server.with_base_url(base_url)),
            // Without a key and a server in the environment, the named server needs no key.
            (None, Some(base_url)) => {
                Some(OpenAiModel::new(model.as_deref().unwrap_or_default()).with_base_url(base_url))
            }
            (server, None) => server,
        };
        match (server, model) {
            (Some(server), Some(model)) => {
                server.validate()?;
                Ok(Self { server, model })
            }
            (server, model) => Err(missing(server.is_none(), model.is_none())),
        }
    }
}

/// Returns the first text that is not blank, trimmed.
fn first_of<const N: usize>(texts: [Option<String>; N]) -> Option<String> {
    texts.into_iter().flatten().map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
}

/// Returns an error that names everything that is missing.
fn missing(server: bool, model: bool) -> Error {
    let model = model.then_some("no model is named: give --model NAME or set OPENAI_MODEL");
    let server = server.then_some(
        "no server is named: give --base-url URL or set OPENAI_BASE_URL; for OpenAI, set OPENAI_API_KEY alone",
    );
    let all: Vec<&str> = [model, server].into_iter().flatten().collect();
    Error::configuration(all.join("\n       "))
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
