//! The model: sends requests to the Responses API, emits chunks.

use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport, Text, async_trait};
use bytes::Bytes;
use provider_http::server::{Authorization, Call, Server};
use serde_json::Value;

use super::answer::Responses;
use super::request::{self, BodySettings, InputForm};
use super::wire::FORMAT;
use crate::model::{OPENAI, VARIABLES};
use crate::wire::format_of;

/// A model behind a server that speaks the Responses API. Cheap to clone; clones share their connections.
///
/// Unlike [`OpenAiModel`](crate::OpenAiModel), it offers reasoning that continues over tool calls, and tools that the
/// server runs. The chain remembers the conversation, so the server is asked not to store it, unless an extra field
/// `store` says otherwise.
///
/// Reasoning goes back unchanged to the server that sent it, and to no other one. For that, encrypted reasoning is
/// requested (`include`), except from models that refuse it. An extra field `include` replaces the list.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next request
/// reuses the connection.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at any point.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server gave a reason, a
/// [`ProviderError`](crate::ProviderError) is the source. Options that the API cannot express are errors of kind
/// [`InvalidRequest`](advisor_core::ErrorKind::InvalidRequest): stop texts. A seed is left out.
///
/// # Example
/// ```no_run
/// use advisor_core::{ChatClient, ChatOptions};
/// use provider_openai::OpenAiResponsesModel;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let options = ChatOptions::default().with_extra("reasoning", json!({"effort": "low", "summary": "auto"}));
/// let model = OpenAiResponsesModel::from_env()?.with_server_tools([json!({"type": "web_search"})]);
/// let client = ChatClient::builder(model).options(options).build()?;
/// println!("{}", client.prompt().user("Who won yesterday?").call().await?.text());
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OpenAiResponsesModel {
    model: Option<Text>,
    server: Server,
    settings: BodySettings,
}

impl OpenAiResponsesModel {
    /// Creates a model at OpenAI, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed() }
    }

    /// Creates a model from the environment, by the variables of [`OpenAiModel::from_env`](crate::OpenAiModel::from_env).
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base URL:
    /// OpenAI itself needs a key.
    pub fn from_env() -> Result<Self> {
        let settings = VARIABLES.read_required(|name| std::env::var(name).ok())?;
        Ok(Self::unnamed().with_env_settings(settings))
    }

    /// Creates a model at this base URL, with key and model from the environment as far as it has them. The variable of
    /// the base URL is not read.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if base URL or key cannot be used.
    pub fn from_env_at(base_url: &str) -> Result<Self> {
        let settings = VARIABLES.read(|name| std::env::var(name).ok());
        let model = Self::unnamed().with_env_settings(settings).with_base_url(base_url.trim());
        model.validate()?;
        Ok(model)
    }

    fn unnamed() -> Self {
        let settings = BodySettings { streaming: true, ..BodySettings::default() };
        Self { model: None, server: Server::new(OPENAI, Authorization::Bearer), settings }
    }

    provider_http::server_setters!();

    /// Sets the header that carries the key, such as `api-key` for older addresses of Azure.
    pub fn with_authorization(mut self, authorization: Authorization) -> Self {
        self.server.authorization = authorization;
        self
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same chunks.
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { settings: BodySettings { streaming, ..self.settings }, ..self }
    }

    /// Sets the tools that the server runs by itself, in the form of its API, such as `{"type": "web_search"}`.
    ///
    /// They are offered beside the tools of the chain. Their calls are opaque blocks of the answer, which nobody runs
    /// here.
    pub fn with_server_tools(self, tools: impl IntoIterator<Item = Value>) -> Self {
        let server_tools: Arc<[Value]> = tools.into_iter().collect();
        Self { settings: BodySettings { server_tools, ..self.settings }, ..self }
    }

    /// Returns the call for a request, and the format name of data for its server.
    fn call(&self, request: &ChatRequest) -> Result<(Call, Text)> {
        let model = VARIABLES.model_of(request, self.model.as_ref())?;
        let mut call = self.server.call("/responses", &[], Bytes::new())?;
        let format = format_of(FORMAT, &call);
        let form = InputForm::new(format.clone());
        let (json, names) = request::body(request, model, &self.settings, &form)?;
        (call.body, call.tools) = (json, Some(names));
        Ok((call, format))
    }
}

#[async_trait]
impl ChatModel for OpenAiResponsesModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (call, format) = self.call(&request)?;
        let settings = request.aggregator_settings();
        let format = || Responses::new(format.clone());
        self.server.stream(&call, request.round, settings, format).await
    }

    fn name(&self) -> &str {
        FORMAT
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn schema_support(&self) -> SchemaSupport {
        SchemaSupport::JsonSchema
    }
}

#[cfg(test)]
mod tests;
