//! Embeddings: sends texts, returns their vectors.

use advisor_core::{Embedding, EmbeddingModel, Error, ErrorKind, Result, Text, async_trait};
use provider_http::server::{Call, Server, Variables};
use serde::{Deserialize, Serialize};

use crate::model::OPENAI;
use crate::profile::Profile;

/// The environment variables of an embedding model.
const VARIABLES: Variables =
    Variables { keys: &["OPENAI_API_KEY"], base_url: "OPENAI_BASE_URL", model: "OPENAI_EMBEDDING_MODEL" };

/// The maximum number of texts in a request. Most servers take as many.
const BATCH: usize = 64;

/// An embedding model behind a server that speaks OpenAI's `/embeddings`. Cheap to clone; clones share their
/// connections.
///
/// # Ordering
/// Long lists of texts are sent in batches, one after another. The embeddings have the order of the texts.
///
/// # Cancellation
/// Dropping the future closes the connection, at any point. Answers of earlier batches are lost.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server gave a reason, a
/// [`ProviderError`](crate::ProviderError) is the source. Transient failures of a batch are retried, see
/// [`with_retries`](Self::with_retries). Numbers that are no embedding, and another number of embeddings than texts,
/// are of kind [`Protocol`](advisor_core::ErrorKind::Protocol). Many servers refuse an empty text.
///
/// # Example
/// ```
/// use advisor_core::EmbeddingModel;
/// use advisor_testkit::{ReplayServer, Reply};
/// use provider_openai::OpenAiEmbeddings;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A local server that replays one answer replaces a real one.
/// let answer = json!({"data": [{"index": 0, "embedding": [0.6, 0.8]}]});
/// let server = ReplayServer::start([Reply::json(200, answer)]).await?;
///
/// let model = OpenAiEmbeddings::new("example-model").with_base_url(format!("{}/v1", server.url()));
/// let embeddings = model.embed_all(&["Hello".into()]).await?;
/// assert_eq!(embeddings[0][..], [0.6, 0.8]);
/// assert_eq!(server.requests()[0].path, "/v1/embeddings");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OpenAiEmbeddings {
    model: Option<Text>,
    server: Server,
    profile: Profile,
    /// Whether the caller chose the profile; otherwise the base URL selects it.
    profile_given: bool,
    dimensions: Option<u32>,
}

impl OpenAiEmbeddings {
    /// Creates a model at OpenAI, without a key.
    pub fn new(model: impl Into<Text>) -> Self {
        Self::unnamed().with_model(model)
    }

    /// Creates a model from the environment: `OPENAI_API_KEY`, `OPENAI_BASE_URL` (default: OpenAI's) and
    /// `OPENAI_EMBEDDING_MODEL`. Without the last one, set the model with [`with_model`](Self::with_model). An empty
    /// variable counts as unset.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base
    /// URL: OpenAI itself needs a key.
    pub fn from_env() -> Result<Self> {
        let settings = VARIABLES.read_required(|name| std::env::var(name).ok())?;
        let named = settings.model.into_iter().fold(Self::unnamed(), Self::with_model);
        let keyed = settings.key.into_iter().fold(named, |model, (_, key)| model.with_api_key(key));
        Ok(settings.base_url.into_iter().fold(keyed, Self::with_base_url))
    }

    fn unnamed() -> Self {
        let profile = Profile::openai();
        Self {
            model: None,
            server: Server::new(OPENAI, profile.authorization.clone()),
            profile,
            profile_given: false,
            dimensions: None,
        }
    }

    provider_http::server_setters!(connection);

    /// Sets the model.
    pub fn with_model(self, model: impl Into<Text>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the base URL: the address up to `/embeddings`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// Its host selects the [`Profile`], unless the caller has set one. With an unusable address,
    /// [`validate`](Self::validate) and the first request fail.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let profile = if self.profile_given { self.profile } else { Profile::for_base_url(&base_url) };
        let mut server = self.server.with_base_url(base_url);
        server.authorization = profile.authorization.clone();
        Self { server, profile, ..self }
    }

    /// Sets the server's profile, of which the path and the header of the key count.
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.server.authorization = profile.authorization.clone();
        Self { profile, profile_given: true, ..self }
    }

    /// Asks for embeddings of this number of dimensions. By default the model decides.
    pub fn with_dimensions(self, dimensions: u32) -> Self {
        Self { dimensions: Some(dimensions), ..self }
    }

    fn call(&self, texts: &[Text]) -> Result<Call> {
        let Some(model) = &self.model else {
            let remedy = "no embedding model is named; set it with `with_model` or OPENAI_EMBEDDING_MODEL";
            return Err(Error::configuration(remedy));
        };
        let body = Body { model, input: texts, dimensions: self.dimensions };
        let body = serde_json::to_vec(&body).map_err(|error| {
            Error::configuration("the texts could not be written as JSON").with_source(error)
        })?;
        self.profile.call(&self.server, model, "/embeddings", body.into())
    }
}

#[async_trait]
impl EmbeddingModel for OpenAiEmbeddings {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        let mut embeddings = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let answer: Answer = self.server.json(&self.call(batch)?).await?;
            embeddings.extend(answer.into_embeddings(batch.len())?);
        }
        Ok(embeddings)
    }

    fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }
}

/// A request for embeddings.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a [Text],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    /// The position of its text. Without one, the position in the answer counts.
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Answer {
    /// Returns the embeddings in the order of their texts.
    fn into_embeddings(self, texts: usize) -> Result<Vec<Embedding>> {
        let found = self.data.len();
        let mut embeddings = vec![None; texts];
        for (position, item) in self.data.into_iter().enumerate() {
            match embeddings.get_mut(item.index.unwrap_or(position)) {
                Some(place @ None) => *place = Some(Embedding::new(item.embedding)?),
                Some(Some(_)) => return Err(violation("the server embedded a text twice")),
                None => return Err(violation("the server embedded a text that it was not sent")),
            }
        }
        let complete: Option<Vec<_>> = embeddings.into_iter().collect();
        complete.ok_or_else(|| violation(format!("the server returned {found} embeddings for {texts} texts")))
    }
}

fn violation(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Protocol { position: None }, message)
}
