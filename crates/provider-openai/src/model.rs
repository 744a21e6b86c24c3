//! The model: requests out, chunks in.

mod address;
mod attempt;
mod secrets;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use advisor_core::{
    AggregatorLimits, ChatModel, ChatRequest, ChunkStream, Error, MessageAggregator, Result, SchemaSupport,
    Text, async_trait,
};
use http::{HeaderMap, Uri};
use secrecy::SecretString;

use crate::failure::Failures;
use crate::profile::Profile;
use crate::request;
use attempt::Call;
use provider_http::backoff::Backoff;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use provider_http::timeouts::Timeouts;
use provider_http::transport::{ReqwestTransport, Transport};

/// OpenAI's own address.
const OPENAI: &str = "https://api.openai.com/v1";

/// A model behind a server that speaks Chat Completions. Cheap to clone; clones share their connections.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next request finds the
/// connection open.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at whatever point.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind); where the server said why, a [`ProviderError`](crate::ProviderError) is the source. What can pass
/// is tried again, see [`OpenAiModel::with_retries`], as long as nothing of the answer was shown.
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
#[derive(Clone)]
pub struct OpenAiModel {
    model: Option<Text>,
    base_url: String,
    api_key: Option<SecretString>,
    headers: Vec<(String, SecretString)>,
    profile: Profile,
    /// The caller chose the profile; otherwise it is that of the base URL.
    profile_given: bool,
    timeouts: Timeouts,
    retries: Backoff,
    grace: Duration,
    sse_limits: SseLimits,
    answer_limits: AggregatorLimits,
    streaming: bool,
    /// The caller's own.
    transport: Option<Arc<dyn Transport>>,
    /// The one that is used otherwise, made when the first request goes out.
    reqwest: Arc<OnceLock<ReqwestTransport>>,
    /// What no text shows, made of key, headers and base URL by the first request.
    redaction: Arc<OnceLock<Redaction>>,
}

impl OpenAiModel {
    /// This model at OpenAI, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed() }
    }

    /// What the environment says: `OPENAI_API_KEY`, `OPENAI_BASE_URL` (OpenAI's own if it is not set) and `OPENAI_MODEL` (if it
    /// is not set, each request must name its model). An empty variable is as good as none.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base URL: OpenAI itself needs a key.
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
            timeouts: Timeouts::default(),
            retries: Backoff::default(),
            grace: Duration::from_secs(5),
            sse_limits: SseLimits::default(),
            answer_limits: AggregatorLimits::default(),
            streaming: true,
            transport: None,
            reqwest: Arc::default(),
            redaction: Arc::default(),
        }
    }

    /// The same model at another server: the address up to `/chat/completions`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// Its host chooses the [`Profile`], unless one is given. An address that cannot be used is an error of
    /// [`validate`](Self::validate), and of the first request.
    #[must_use]
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let profile = if self.profile_given { self.profile } else { Profile::for_base_url(&base_url) };
        Self { base_url, profile, redaction: Arc::default(), ..self }
    }

    /// The same model with a key. It is in no `Debug` output, log or error.
    #[must_use]
    pub fn with_api_key(self, key: impl Into<SecretString>) -> Self {
        Self { api_key: Some(key.into()), redaction: Arc::default(), ..self }
    }

    /// The same model with a header on every request, in place of an earlier one of this name. Its value is treated as a secret.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<SecretString>) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        Self { redaction: Arc::default(), ..self }
    }

    /// The same model behind a server that is as `profile` says.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, profile_given: true, ..self }
    }

    /// The same model with other clocks.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        // The transport is told how long it may connect when it is made.
        let same = self.timeouts.connect == timeouts.connect;
        let reqwest = if same { self.reqwest } else { Arc::default() };
        Self { timeouts, reqwest, ..self }
    }

    /// The same model with another schedule for asking again.
    ///
    /// A request is repeated after a failure that can pass: no connection, a timeout, 429, 5xx, or an error that the server
    /// sends in place of the answer. What the server says in `Retry-After` goes before the schedule. Once something of the
    /// answer was shown, nothing is repeated.
    #[must_use]
    pub fn with_retries(self, retries: Backoff) -> Self {
        Self { retries, ..self }
    }

    /// The same model, which waits for so long for calls and usage that may follow the finish reason. Default 5 s. It counts from
    /// the finish reason, or from what was added to the answer since; usage, comments and empty events do not prolong it. Only
    /// servers that send no end marker and leave the connection open make anyone wait.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The same model with other bounds for lines and events. A body that is not streamed is bounded like an event.
    #[must_use]
    pub fn with_sse_limits(self, limits: SseLimits) -> Self {
        Self { sse_limits: limits, ..self }
    }

    /// The same model with other bounds for an answer.
    #[must_use]
    pub fn with_answer_limits(self, limits: AggregatorLimits) -> Self {
        Self { answer_limits: limits, ..self }
    }

    /// The same model, which asks for streamed answers (the default) or for whole ones. Whole ones come out as the same chunks:
    /// for servers that lose tool calls when they stream (Q72).
    #[must_use]
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    /// The same model over another transport. How long that one takes to connect is its own matter.
    #[must_use]
    pub fn with_transport(self, transport: impl Transport) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// What the server is taken for.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn transport(&self) -> Result<&dyn Transport> {
        if let Some(transport) = &self.transport {
            return Ok(&**transport);
        }
        if let Some(transport) = self.reqwest.get() {
            return Ok(transport);
        }
        let transport = ReqwestTransport::new(self.timeouts.connect)
            .map_err(|error| Failures::default().transport(error))?;
        Ok(self.reqwest.get_or_init(|| transport))
    }

    /// Checks the base URL, the key and the headers, so that a program can refuse them before its first request.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), with what to do. It shows neither the
    /// base URL nor the key.
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

    /// The address and the headers of a request to this model.
    fn head(&self, model: &str) -> Result<(Uri, HeaderMap)> {
        let uri = address::of(&self.base_url, model, &self.profile.endpoint)?;
        let headers = address::headers(&self.headers, self.api_key.as_ref(), self.profile.authorization)?;
        Ok((uri, headers))
    }

    fn call(&self, request: &ChatRequest) -> Result<Call> {
        let profile = &self.profile;
        let model = request.options.model.as_ref().or(self.model.as_ref()).ok_or_else(|| {
            Error::configuration("no model is named; set OPENAI_MODEL or the request's `ChatOptions::model`")
        })?;
        let (uri, headers) = self.head(model)?;
        let body = request::body(request, model, self.streaming, profile)?;
        Ok(Call { uri, headers, body, text: profile.text })
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let call = self.call(&request)?;
        let mut settings = request.aggregator_settings();
        settings.limits = self.answer_limits;
        settings.choices = call.body.choices;
        let deltas = self.answer(&call).await?;
        Ok(ChunkStream::from_delta_batches(MessageAggregator::with_settings(request.round, settings), deltas))
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

/// Shows where requests go, not with what: neither the key nor the headers, nor what the base URL may hold beside its host.
impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("model", &self.model)
            .field("host", &address::host(&self.base_url))
            .field("profile", &self.profile.name)
            .field("streaming", &self.streaming)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
