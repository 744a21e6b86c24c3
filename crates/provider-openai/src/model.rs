//! The model: sends requests, emits chunks.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport, Text, async_trait};
use bytes::Bytes;
use provider_http::server::{Call, Server, Variables};

use crate::answer::ChatCompletions;
use crate::profile::Profile;
use crate::request::{self, BodySettings};
use crate::wire::{FORMAT, format_of};

/// The base URL of OpenAI.
pub(crate) const OPENAI: &str = "https://api.openai.com/v1";

/// The environment variables of both models.
pub(crate) const VARIABLES: Variables =
    Variables { keys: &["OPENAI_API_KEY"], base_url: "OPENAI_BASE_URL", model: "OPENAI_MODEL" };

/// A model behind a server that speaks Chat Completions. Cheap to clone; clones share their connections.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next
/// request reuses the connection.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at any point.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server gave a reason, a
/// [`ProviderError`](crate::ProviderError) is the source. Transient failures are retried while no part of the
/// answer was shown, see [`OpenAiModel::with_retries`].
///
/// # Example
/// ```no_run
/// use advisor_core::ChatClient;
/// use provider_openai::OpenAiModel;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(OpenAiModel::from_env()?).build()?;
/// println!("{}", client.prompt().user("Hello").call().await?.text());
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OpenAiModel {
    model: Option<Text>,
    server: Server,
    settings: BodySettings,
    /// Whether the caller chose the profile; otherwise the base URL selects it.
    profile_given: bool,
}

impl OpenAiModel {
    /// Creates a model at OpenAI, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed() }
    }

    /// Creates a model from the environment: `OPENAI_API_KEY`, `OPENAI_BASE_URL` (default: OpenAI's) and
    /// `OPENAI_MODEL`. Without `OPENAI_MODEL`, each request must name its model. An empty variable counts as
    /// unset.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base
    /// URL: OpenAI itself needs a key.
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
        let profile = Profile::openai();
        let server = Server::new(OPENAI, profile.authorization.clone());
        Self {
            model: None,
            server,
            settings: BodySettings { profile: Arc::new(profile), streaming: true },
            profile_given: false,
        }
    }

    provider_http::server_setters!(except with_base_url);

    /// Sets the base URL: the address up to `/chat/completions`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// Its host selects the [`Profile`], unless the caller has set one. With an unusable address,
    /// [`validate`](Self::validate) and the first request fail.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let mut settings = self.settings;
        if !self.profile_given {
            settings.profile = Arc::new(Profile::for_base_url(&base_url));
        }
        let mut server = self.server.with_base_url(base_url);
        server.authorization = settings.profile.authorization.clone();
        Self { server, settings, ..self }
    }

    /// Sets the server's profile.
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.server.authorization = profile.authorization.clone();
        self.settings.profile = Arc::new(profile);
        Self { profile_given: true, ..self }
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks. They suit servers that lose tool calls when they stream (Q72).
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { settings: BodySettings { streaming, ..self.settings }, ..self }
    }

    /// Returns the call for a request, and the format name of data for its server.
    fn call(&self, request: &ChatRequest) -> Result<(Call, Text)> {
        let model = VARIABLES.model_of(request, self.model.as_ref())?;
        let mut call = self.settings.profile.call(&self.server, model, "/chat/completions", Bytes::new())?;
        let format = format_of(FORMAT, &call);
        let (body, names) = request::body(request, model, format.clone(), &self.settings)?;
        (call.body, call.tools) = (body, Some(names));
        Ok((call, format))
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (call, format) = self.call(&request)?;
        let settings = request.aggregator_settings();
        let tags = self.settings.profile.think_tags;
        let format = || ChatCompletions::new(tags, format.clone());
        self.server.stream(&call, request.round, settings, format).await
    }

    fn name(&self) -> &str {
        &self.settings.profile.name
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.settings.profile.schema_support
    }
}
