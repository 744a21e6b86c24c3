//! The model: sends requests, emits chunks.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport, Text, async_trait};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use provider_http::server::{Authorization, EnvSettings, Server, Variables};
use secrecy::SecretString;
use serde_json::Value;

use crate::answer::Messages;
use crate::caching::PromptCaching;
use crate::request::{self, BodySettings};
use crate::wire::{format_of, is_anthropic};

/// The base URL of Anthropic.
const ANTHROPIC: &str = "https://api.anthropic.com";
const PATH: &str = "/v1/messages";
/// The version of the API whose requests and answers this crate knows.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// The variable of a token, which is sent in another header than a key.
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const VARIABLES: Variables = Variables {
    keys: &["ANTHROPIC_API_KEY", TOKEN],
    base_url: "ANTHROPIC_BASE_URL",
    model: "ANTHROPIC_MODEL",
};

/// A model behind a server that speaks Anthropic's Messages API. Cheap to clone; clones share their connections.
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
/// [`ProviderError`](crate::ProviderError) is the source. Transient failures are retried while no part of the
/// answer was shown, see [`with_retries`](Self::with_retries).
///
/// # Requests
/// | of a request | on the wire |
/// | --- | --- |
/// | system messages | the field `system`, wherever they stand in the list |
/// | several messages of one author in a row | one message; results of tools come first in it |
/// | messages of other providers | call ids and tool names are mapped; thinking and opaque blocks of another server are left out |
/// | arguments that are no JSON object | the text in an object, as `unparsable_arguments` |
/// | images, PDFs, texts | inline, by URL or by file id, also in results of tools; a note in place of other media |
/// | `max_tokens` | always; 8,192 if the request names none, and in addition the budget for thinking in `extra` |
/// | a JSON schema for the answer | `output_config`, see [`with_schema_support`](Self::with_schema_support) |
/// | `seed`, an object without a schema | left out, as the API has neither |
/// | thinking, `top_k`, `mcp_servers`, `container` and others | `ChatOptions::extra`, unchanged |
/// | tools of the server | [`with_tool_definition`](Self::with_tool_definition) |
/// | features that are not generally available | [`with_header`](Self::with_header): `anthropic-beta`, joined by commas |
///
/// # Example
/// ```no_run
/// use advisor_core::ChatClient;
/// use provider_anthropic::AnthropicModel;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(AnthropicModel::from_env()?).build()?;
/// println!("{}", client.prompt().user("Hello").call().await?.text());
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct AnthropicModel {
    model: Option<Text>,
    server: Server,
    /// `None` leaves it to the host.
    schema_support: Option<SchemaSupport>,
    body: BodySettings,
}

impl AnthropicModel {
    /// Creates a model at Anthropic, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed() }
    }

    /// Creates a model from the environment: `ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL`
    /// (default: Anthropic's) and `ANTHROPIC_MODEL`. Without `ANTHROPIC_MODEL`, each request must name its model.
    /// The key takes precedence over the token. An empty variable counts as unset.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a token nor
    /// a base URL: Anthropic itself needs a key.
    pub fn from_env() -> Result<Self> {
        VARIABLES.read_required(|name| std::env::var(name).ok()).map(Self::from_settings)
    }

    /// Creates a model at this base URL, with key and model from the environment as far as it has them. The variable of
    /// the base URL is not read.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if base URL or key cannot be used.
    pub fn from_env_at(base_url: &str) -> Result<Self> {
        let settings = VARIABLES.read(|name| std::env::var(name).ok());
        let model = Self::from_settings(settings).with_base_url(base_url.trim());
        model.validate()?;
        Ok(model)
    }

    fn from_settings(mut settings: EnvSettings) -> Self {
        let token = settings.key.take_if(|(variable, _)| *variable == TOKEN);
        let model = Self::unnamed().with_env_settings(settings);
        token.into_iter().fold(model, |model, (_, token)| model.with_auth_token(token))
    }

    fn unnamed() -> Self {
        let mut server = Server::new(ANTHROPIC, Authorization::Header(KEY_HEADER));
        server.api_headers.insert(VERSION_HEADER, VERSION);
        Self { model: None, server, schema_support: None, body: BodySettings::default() }
    }

    provider_http::server_setters!();

    /// Sets a token, which is sent as `Authorization: Bearer`, in place of a key in `x-api-key`. It appears in no
    /// `Debug` output, log or error.
    pub fn with_auth_token(mut self, token: impl Into<SecretString>) -> Self {
        self.server.authorization = Authorization::Bearer;
        self.with_api_key(token)
    }

    /// Sets whether the server caches the beginning of requests. Default: [`PromptCaching::Off`].
    pub fn with_prompt_caching(mut self, caching: PromptCaching) -> Self {
        self.body.caching = caching;
        self
    }

    /// Adds the definition of a tool in the form of the API.
    ///
    /// It defines a tool that the server runs, such as its web search. It may also define a tool of the request with
    /// the same name, such as `computer`, whose form only the API knows.
    ///
    /// Calls and results of a tool that the server runs are opaque blocks of the answer, which go back to the server.
    /// The tool loop never runs them. If the server pauses a long answer, the tool loop asks it to go on.
    ///
    /// ```
    /// use provider_anthropic::AnthropicModel;
    /// use serde_json::json;
    ///
    /// let search = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
    /// let model = AnthropicModel::new("claude-sonnet-4-5").with_tool_definition(search);
    /// ```
    pub fn with_tool_definition(mut self, definition: Value) -> Self {
        self.body.definitions.push(definition);
        self
    }

    /// Sets the part of a response format that the server enforces.
    ///
    /// The default is [`SchemaSupport::JsonSchema`] at Anthropic, whose models from Claude 4.5 on enforce a schema.
    /// At other hosts it is [`SchemaSupport::None`], which asks for the form in words.
    pub fn with_schema_support(self, schema_support: SchemaSupport) -> Self {
        Self { schema_support: Some(schema_support), ..self }
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks.
    pub fn with_streaming(mut self, streaming: bool) -> Self {
        self.body.streaming = streaming;
        self
    }
}

#[async_trait]
impl ChatModel for AnthropicModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let model = VARIABLES.model_of(&request, self.model.as_ref())?;
        let mut call = self.server.call(PATH, &[], Bytes::new())?;
        let name = format_of(call.uri.host().unwrap_or_default());
        let (body, names) = request::body(&request, model, &name, &self.body)?;
        (call.body, call.tools) = (body, Some(Arc::new(names)));
        let format = || Messages::new(name.clone());
        self.server.stream(&call, request.round, request.aggregator_settings(), format).await
    }

    fn name(&self) -> &str {
        "anthropic"
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn schema_support(&self) -> SchemaSupport {
        let call = self.server.call(PATH, &[], Bytes::new());
        let at_anthropic = call.is_ok_and(|call| call.uri.host().is_some_and(is_anthropic));
        let usual = if at_anthropic { SchemaSupport::JsonSchema } else { SchemaSupport::None };
        self.schema_support.unwrap_or(usual)
    }
}

/// Shows the host, but neither the key nor the headers nor the rest of the base URL.
impl fmt::Debug for AnthropicModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicModel")
            .field("model", &self.model)
            .field("server", &self.server)
            .field("streaming", &self.body.streaming)
            .field("caching", &self.body.caching)
            .finish_non_exhaustive()
    }
}
