//! The model: sends requests, emits chunks.

#[cfg(test)]
mod tests;

use std::fmt;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Error, Result, SchemaSupport, Text, async_trait};
use provider_http::exchange::Call;
use provider_http::server::{Server, path_segment};

use crate::answer::ChatCompletions;
use crate::profile::{Endpoint, Profile};
use crate::request::{self, Body};

/// The base URL of OpenAI.
pub(crate) const OPENAI: &str = "https://api.openai.com/v1";

/// The environment variables of a model.
pub(crate) struct Variables {
    pub(crate) key: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<Text>,
}

impl Variables {
    /// Reads the variables. An empty one counts as unset.
    pub(crate) fn read(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let var = |name| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let (key, base_url) = (var("OPENAI_API_KEY"), var("OPENAI_BASE_URL"));
        if key.is_none() && base_url.is_none() {
            return Err(Error::configuration(
                "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key",
            ));
        }
        Ok(Self { key, base_url, model: var("OPENAI_MODEL").map(Text::from) })
    }
}

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
#[derive(Clone)]
pub struct OpenAiModel {
    model: Option<Text>,
    server: Server,
    profile: Profile,
    /// Whether the caller chose the profile; otherwise the base URL selects it.
    profile_given: bool,
    streaming: bool,
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
        Self::from_vars(|name| std::env::var(name).ok())
    }

    fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let Variables { key, base_url, model } = Variables::read(var)?;
        let unkeyed = Self { model, ..Self::unnamed() };
        let keyed = key.into_iter().fold(unkeyed, Self::with_api_key);
        Ok(base_url.into_iter().fold(keyed, Self::with_base_url))
    }

    fn unnamed() -> Self {
        let profile = Profile::openai();
        let server = Server::new(OPENAI, profile.authorization.clone());
        Self { model: None, server, profile, profile_given: false, streaming: true }
    }

    provider_http::server_setters!(except with_base_url);

    /// Sets the base URL: the address up to `/chat/completions`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// Its host selects the [`Profile`], unless the caller has set one. With an unusable address,
    /// [`validate`](Self::validate) and the first request fail.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let profile = if self.profile_given { self.profile } else { Profile::for_base_url(&base_url) };
        let server = self.server.with_authorization(profile.authorization.clone()).with_base_url(base_url);
        Self { server, profile, ..self }
    }

    /// Sets the server's profile.
    pub fn with_profile(self, profile: Profile) -> Self {
        let server = self.server.with_authorization(profile.authorization.clone());
        Self { server, profile, profile_given: true, ..self }
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks. They suit servers that lose tool calls when they stream (Q72).
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    /// Returns the profile of the server.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Checks the base URL, the key and the headers, so that a program can refuse them before its first request.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), with a message that says what to do.
    /// The message shows neither the base URL nor the key.
    ///
    /// # Example
    /// ```
    /// use provider_openai::OpenAiModel;
    ///
    /// assert!(OpenAiModel::new("m").with_base_url("http://127.0.0.1:8080/v1").validate().is_ok());
    /// assert!(OpenAiModel::new("m").with_base_url("127.0.0.1:8080").validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<()> {
        self.server.validate()
    }

    /// Returns the call for a request, and the number of its choices.
    fn call(&self, request: &ChatRequest) -> Result<(Call, u32)> {
        let model = request.options.model.as_ref().or(self.model.as_ref()).ok_or_else(|| {
            Error::configuration("no model is named; set OPENAI_MODEL or the request's `ChatOptions::model`")
        })?;
        let Body { json, choices, names } = request::body(request, model, self.streaming, &self.profile)?;
        let call = match &self.profile.endpoint {
            Endpoint::AzureDeployment { api_version } => {
                let path = format!("/openai/deployments/{}/chat/completions", path_segment(model));
                self.server.call(&path, &[("api-version", api_version)], json)?
            }
            _ => self.server.call("/chat/completions", &[], json)?,
        };
        Ok((call.with_tools(names), choices))
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (call, choices) = self.call(&request)?;
        let mut settings = request.aggregator_settings();
        settings.choices = choices;
        settings.eager_calls = request.options.eager_calls.unwrap_or(self.profile.eager_calls);
        let format = || ChatCompletions::new(self.profile.text);
        self.server.stream(&call, request.round, settings, format).await
    }

    fn name(&self) -> &str {
        &self.profile.name
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.profile.options.schema_support
    }
}

/// Shows of the server only its host and the settings of its client.
impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("model", &self.model)
            .field("server", &self.server)
            .field("profile", &self.profile.name)
            .field("streaming", &self.streaming)
            .finish_non_exhaustive()
    }
}
