//! The model: sends requests, emits chunks.

mod host;
#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Error, Result, SchemaSupport, Text, async_trait};
use provider_http::failure::ProviderError;
use provider_http::server::{Authorization, Call, EnvSettings, Server, Variables};

use crate::answer::OllamaChat;
use crate::request;

const VARIABLES: Variables =
    Variables { keys: &["OLLAMA_API_KEY"], base_url: "OLLAMA_HOST", model: "OLLAMA_MODEL" };

/// A model of an Ollama server, over Ollama's own API. Cheap to clone; clones share their connections.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next
/// request reuses the connection.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at any point. Ollama then stops generating.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server gave a reason, a
/// [`ProviderError`] is the source. Transient failures are retried while no part of the answer was shown, see
/// [`OllamaModel::with_retries`].
///
/// # Requests
/// | of a request | on the wire |
/// | --- | --- |
/// | tool choice | Ollama has none: for no tool none is offered, for a certain tool that one alone, and `Required` is not enforced |
/// | results | with the tool's name, and with the call's id for newer versions |
/// | images | bytes in base64, in user messages and results; other media become a note |
/// | structured output | `format`: `json` or the schema, but not together with tools: the schema leaves the model no way to call one |
/// | `temperature`, `top_p`, `max_tokens`, `seed`, `stop` | fields of `options` |
/// | `think`, `keep_alive`, `options` such as `num_ctx` | extra fields of `ChatOptions`; single options override ours |
/// | history of other providers | reasoning as `thinking`, a refusal as text; signatures and other data are left out |
///
/// # Quirks
/// - Each entry of a line is another call, whatever its index. A call without an id, or with a used one, gets one.
/// - A call without a name is kept, and answered with an error. Arguments may be a text, `null` or missing.
/// - Calls decide, not `done_reason`, which is `stop` after calls, too. Without it, the reason is inferred.
/// - Without a last line the answer is truncated, and none of its calls runs.
/// - An error line after the status 200, also in plain words, is that error, after the content.
/// - Lone surrogates, repeated members and numbers out of range are repaired.
///
/// # Example
/// ```no_run
/// use advisor_core::{ChatClient, ChatOptions};
/// use provider_ollama::OllamaModel;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// // Fields of Ollama's own are extra fields of the options.
/// let options = ChatOptions::default()
///     .with_extra("think", true)
///     .with_extra("keep_alive", "10m")
///     .with_extra("options", json!({"num_ctx": 32_768}));
/// let client = ChatClient::builder(OllamaModel::new("qwen3")).options(options).build()?;
/// println!("{}", client.prompt().user("Hello").call().await?.text());
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OllamaModel {
    model: Option<Text>,
    server: Server,
    streaming: bool,
}

impl OllamaModel {
    /// Creates a model of the server on this machine, `http://127.0.0.1:11434`, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed(host::LOCAL.to_owned()) }
    }

    /// Creates a model from the environment: `OLLAMA_HOST`, `OLLAMA_API_KEY` and `OLLAMA_MODEL`. An empty variable
    /// counts as unset.
    ///
    /// `OLLAMA_HOST` is a host, a host and a port, or a URL, as for Ollama's own programs; the default is
    /// `127.0.0.1:11434`. The key is sent as a bearer token. Without `OLLAMA_MODEL`, each request must name its
    /// model.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if host or key cannot be used.
    pub fn from_env() -> Result<Self> {
        Self::from_settings(VARIABLES.read(|name| std::env::var(name).ok()))
    }

    /// Creates a model at this base URL, with key and model from the environment as far as it has them. The variable of
    /// the base URL is not read; the base URL may have any of its forms.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if base URL or key cannot be used.
    pub fn from_env_at(base_url: &str) -> Result<Self> {
        let mut settings = VARIABLES.read(|name| std::env::var(name).ok());
        settings.base_url = Some(base_url.to_owned());
        Self::from_settings(settings)
    }

    fn from_settings(settings: EnvSettings) -> Result<Self> {
        let base_url = host::base_url(settings.base_url.as_deref().unwrap_or_default());
        let model = Self::unnamed(host::LOCAL.to_owned()).with_env_settings(settings).with_base_url(base_url);
        model.validate()?;
        Ok(model)
    }

    fn unnamed(base_url: String) -> Self {
        Self { model: None, server: Server::new(base_url, Authorization::Bearer), streaming: true }
    }

    provider_http::server_setters!();

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks. They suit models that lose tool calls when they stream (Q72).
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    fn call(&self, request: &ChatRequest) -> Result<Call> {
        let model = VARIABLES.model_of(request, self.model.as_ref())?;
        let (body, names) = request::body(request, model, self.streaming)?;
        let mut call = self.server.call("/api/chat", &[], body)?;
        call.tools = Some(Arc::new(names));
        Ok(call)
    }
}

#[async_trait]
impl ChatModel for OllamaModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let call = self.call(&request)?;
        let answer =
            self.server.stream(&call, request.round, request.aggregator_settings(), OllamaChat::default);
        let model = VARIABLES.model_of(&request, self.model.as_ref())?;
        answer.await.map_err(|error| with_remedy(error, model))
    }

    fn name(&self) -> &str {
        "ollama"
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn schema_support(&self) -> SchemaSupport {
        // The grammar of a schema leaves the model no way to call a tool.
        SchemaSupport::JsonSchemaWithoutTools
    }
}

/// Adds the remedy to the error of a server that does not have the model.
fn with_remedy(error: Error, model: &str) -> Error {
    let said = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
    let is_missing = |said: &&ProviderError| {
        said.status == Some(404) && said.message.starts_with("model ") && said.message.contains("not found")
    };
    let Some(said) = said.filter(is_missing).cloned() else { return error };
    let message =
        format!("the server does not have the model `{model}`; run `ollama pull {model}` there (HTTP 404)");
    Error::new(error.kind(), message).with_source(said)
}
