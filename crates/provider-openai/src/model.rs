//! The model: sends requests, emits chunks.

mod address;
mod secrets;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use advisor_core::{
    AggregatorLimits, ChatModel, ChatRequest, ChunkStream, Error, MessageAggregator, Result, SchemaSupport,
    Text, async_trait,
};
use http::{HeaderMap, Uri};
use secrecy::SecretString;

use crate::answer::ChatCompletions;
use crate::profile::Profile;
use crate::request::{self, Body, ToolNames};
use provider_http::backoff::Backoff;
use provider_http::exchange::{Call, HttpClient};
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use provider_http::timeouts::Timeouts;
use provider_http::transport::Transport;

/// The base URL of OpenAI.
const OPENAI: &str = "https://api.openai.com/v1";

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
    base_url: String,
    api_key: Option<SecretString>,
    headers: Vec<(String, SecretString)>,
    profile: Profile,
    /// Whether the caller chose the profile; otherwise the base URL selects it.
    profile_given: bool,
    http: HttpClient,
    answer_limits: AggregatorLimits,
    streaming: bool,
    /// The secrets to redact, collected from key, headers and base URL by the first request.
    redaction: Arc<OnceLock<Redaction>>,
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
        let var = |name| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let (key, base_url) = (var("OPENAI_API_KEY"), var("OPENAI_BASE_URL"));
        if key.is_none() && base_url.is_none() {
            return Err(Error::configuration(
                "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key",
            ));
        }
        let model = Self {
            model: var("OPENAI_MODEL").map(Text::from),
            api_key: key.map(SecretString::from),
            ..Self::unnamed()
        };
        Ok(base_url.into_iter().fold(model, Self::with_base_url))
    }

    fn unnamed() -> Self {
        Self {
            model: None,
            base_url: OPENAI.to_owned(),
            api_key: None,
            headers: Vec::new(),
            profile: Profile::openai(),
            profile_given: false,
            http: HttpClient::default(),
            answer_limits: AggregatorLimits::default(),
            streaming: true,
            redaction: Arc::default(),
        }
    }

    /// Sets the base URL: the address up to `/chat/completions`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// Its host selects the [`Profile`], unless the caller has set one. With an unusable address,
    /// [`validate`](Self::validate) and the first request fail.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let profile = if self.profile_given { self.profile } else { Profile::for_base_url(&base_url) };
        Self { base_url, profile, redaction: Arc::default(), ..self }
    }

    /// Sets the key. It appears in no `Debug` output, log or error.
    pub fn with_api_key(self, key: impl Into<SecretString>) -> Self {
        Self { api_key: Some(key.into()), redaction: Arc::default(), ..self }
    }

    /// Adds a header to every request, replacing an earlier one of this name. Its value is treated as a secret.
    pub fn with_header(mut self, name: &str, value: impl Into<SecretString>) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        Self { redaction: Arc::default(), ..self }
    }

    /// Sets the server's profile.
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, profile_given: true, ..self }
    }

    /// Sets the timeouts.
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { http: self.http.with_timeouts(timeouts), ..self }
    }

    /// Sets the schedule of retries, see [`HttpClient::with_retries`].
    pub fn with_retries(self, retries: Backoff) -> Self {
        Self { http: self.http.with_retries(retries), ..self }
    }

    /// Sets the bounds for lines and events. The bound for an event also applies to JSON that is not streamed.
    pub fn with_sse_limits(self, limits: SseLimits) -> Self {
        Self { http: self.http.with_limits(limits), ..self }
    }

    /// Sets the bounds for an answer.
    pub fn with_answer_limits(self, limits: AggregatorLimits) -> Self {
        Self { answer_limits: limits, ..self }
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks. They suit servers that lose tool calls when they stream (Q72).
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    /// Sets the transport, which is responsible for its own connect timeout.
    pub fn with_transport(self, transport: impl Transport) -> Self {
        Self { http: self.http.with_transport(transport), ..self }
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
        self.head("").map(|_| ())
    }

    /// Returns the address and the headers of a request to this model.
    fn head(&self, model: &str) -> Result<(Uri, HeaderMap)> {
        let uri = address::of(&self.base_url, model, &self.profile.endpoint)?;
        let headers = address::headers(&self.headers, self.api_key.as_ref(), self.profile.authorization)?;
        Ok((uri, headers))
    }

    /// Returns the call for a request, the number of its choices, and its tool names on the wire.
    fn call(&self, request: &ChatRequest) -> Result<(Call, u32, Arc<ToolNames>)> {
        let model = request.options.model.as_ref().or(self.model.as_ref()).ok_or_else(|| {
            Error::configuration("no model is named; set OPENAI_MODEL or the request's `ChatOptions::model`")
        })?;
        let (uri, headers) = self.head(model)?;
        let Body { json, choices, names } = request::body(request, model, self.streaming, &self.profile)?;
        Ok((Call { uri, headers, body: json }, choices, names))
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (call, choices, names) = self.call(&request)?;
        let mut settings = request.aggregator_settings();
        settings.limits = self.answer_limits;
        settings.choices = choices;
        let aggregator = MessageAggregator::with_settings(request.round, settings);
        let redaction = self.redaction.get_or_init(|| secrets::of(self));
        let format = || ChatCompletions::new(self.profile.text, redaction.clone()).with_tools(&names);
        self.http.stream(&call, redaction, format, aggregator).await
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

/// Shows the host, but neither the key nor the headers nor the rest of the base URL.
impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("model", &self.model)
            .field("host", &address::host(&self.base_url))
            .field("profile", &self.profile.name)
            .field("streaming", &self.streaming)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}
