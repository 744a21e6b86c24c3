//! The model: sends requests, emits chunks.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Error, Result, SchemaSupport, Text, async_trait};
use bytes::Bytes;
use http::{HeaderName, Uri};
use provider_http::server::{Authorization, Call, Server, Variables, path_segment};

use crate::answer::GenerateContent;
use crate::request::{self, Form};
use crate::wire::format_of;

/// The base URL of Google's Gemini API.
const GOOGLE: &str = "https://generativelanguage.googleapis.com";
/// The version of the API, for a base URL without a path.
const VERSION: &str = "/v1beta";
const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");
const VARIABLES: Variables = Variables {
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    base_url: "GOOGLE_GEMINI_BASE_URL",
    model: "GEMINI_MODEL",
};

/// A model behind Google's Gemini API or Vertex AI. Cheap to clone; clones share their connections.
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
/// [`ProviderError`](crate::ProviderError) is the source. A finish reason that reports a failure, such as
/// `MALFORMED_FUNCTION_CALL`, is an error. A blocked prompt or answer is none: it finishes with
/// [`ContentFilter`](advisor_core::FinishReason::ContentFilter).
///
/// # Example
/// ```no_run
/// use advisor_core::ChatClient;
/// use provider_gemini::GeminiModel;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(GeminiModel::from_env()?).build()?;
/// println!("{}", client.prompt().user("Hello").call().await?.text());
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct GeminiModel {
    model: Option<Text>,
    server: Server,
    streaming: bool,
    is_vertex_ai: bool,
}

impl GeminiModel {
    /// Creates a model at Google's Gemini API, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..Self::unnamed() }
    }

    /// Creates a model from the environment: `GEMINI_API_KEY` or else `GOOGLE_API_KEY`, `GOOGLE_GEMINI_BASE_URL`
    /// (default: Google's) and `GEMINI_MODEL`. Without `GEMINI_MODEL`, each request must name its model. An empty
    /// variable counts as unset.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base URL.
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
        let server = Server::new(with_version(GOOGLE.to_owned()), Authorization::Header(KEY_HEADER));
        Self { model: None, server, streaming: true, is_vertex_ai: false }
    }

    /// Sets the base URL: the address up to `/models`, such as `http://127.0.0.1:8080/v1beta`. Without a path, it
    /// gets `/v1beta`. With an unusable one, [`validate`](Self::validate) and the first request fail.
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.server = self.server.with_base_url(with_version(base_url.into()));
        self
    }

    provider_http::server_setters!(except with_base_url);

    /// Takes the server for Vertex AI: the key is an access token, and calls have no ids, since it refuses them. The base
    /// URL is `https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/publishers/google`.
    pub fn at_vertex_ai(mut self) -> Self {
        self.server.authorization = Authorization::Bearer;
        Self { is_vertex_ai: true, ..self }
    }

    /// Sets whether to ask for streamed answers (the default) or for whole ones. Whole answers produce the same
    /// chunks.
    pub fn with_streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    /// Returns the call for a request, and the format of its answer.
    fn call(&self, request: &ChatRequest) -> Result<(Call, Text)> {
        let model = VARIABLES.model_of(request, self.model.as_ref())?;
        let resource = resource(model)?;
        let (method, query): (_, &[(&str, &str)]) = match self.streaming {
            true => ("streamGenerateContent", &[("alt", "sse")]),
            false => ("generateContent", &[]),
        };
        let mut call = self.server.call(&format!("/{resource}:{method}"), query, Bytes::new())?;
        let format = format_of(call.uri.host().unwrap_or_default());
        let form = Form {
            format: format.clone(),
            sends_call_ids: !self.is_vertex_ai,
            is_before_gemini_3: is_before_gemini_3(model),
        };
        let (body, names) = request::body(request, &form)?;
        (call.body, call.tools) = (body, Some(Arc::new(names)));
        Ok((call, format))
    }
}

#[async_trait]
impl ChatModel for GeminiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (call, name) = self.call(&request)?;
        let format = || GenerateContent::new(name.clone());
        self.server.stream(&call, request.round, request.aggregator_settings(), format).await
    }

    fn name(&self) -> &str {
        if self.is_vertex_ai { "vertex-ai" } else { "gemini" }
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Models before Gemini 3 refuse a schema beside tools.
    fn schema_support(&self) -> SchemaSupport {
        match self.model.as_deref().is_some_and(is_before_gemini_3) {
            true => SchemaSupport::JsonSchemaWithoutTools,
            false => SchemaSupport::JsonSchema,
        }
    }
}

/// Checks whether a model is older than Gemini 3, by its name. An unknown name counts as Gemini 3.
fn is_before_gemini_3(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    ["gemini-1", "gemini-2", "gemma", "learnlm"].iter().any(|name| model.contains(name))
}

/// Adds the version of the API to a base URL without a path.
fn with_version(base_url: String) -> String {
    let has_no_path =
        base_url.trim().parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.path() == "/");
    if has_no_path { format!("{}{VERSION}", base_url.trim().trim_end_matches('/')) } else { base_url }
}

/// Returns the path of a model: below `models`, unless the name is a path such as `tunedModels/mine`.
fn resource(model: &str) -> Result<String> {
    let segments: Vec<&str> = model.split('/').collect();
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
        return Err(Error::configuration(
            "the name of the model is no name; it looks like `gemini-2.5-flash` or `tunedModels/mine`",
        ));
    }
    let path = segments.iter().map(|segment| path_segment(segment).to_string()).collect::<Vec<_>>().join("/");
    Ok(if segments.len() == 1 { format!("models/{path}") } else { path })
}
