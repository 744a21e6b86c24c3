//! `AsyncOpenAiModel`: a model of Chat Completions, asked by a client of async-openai.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, Error, MessageAggregator, Result, SchemaSupport, Text, async_trait,
};
use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::types::stream::StreamResponse;
use futures::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::convert::Converter;
use crate::error::Failures;
use crate::request::{Body, body};

/// A model of Chat Completions, asked by a client of async-openai.
///
/// # Ordering
/// Chunks come as the client reads them. The client reads ahead of a slow reader, without a bound.
///
/// # Cancellation
/// Dropping the future or the stream ends the request: the client closes its connection.
///
/// # Errors
/// Each has a kind; a server's words are in its source, without the client's key. An answer that ends without a finish
/// reason is `Truncated`: the client does not tell whether the end marker came. An option that the client cannot send
/// is an error of kind `Configuration`.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use async_openai::{Client, config::OpenAIConfig};
/// use model_async_openai::AsyncOpenAiModel;
///
/// let config = OpenAIConfig::new().with_api_base("http://127.0.0.1:8080/v1").with_api_key("none");
/// let model = AsyncOpenAiModel::new(Client::with_config(config), "qwen3");
/// let client = ChatClient::builder(model).build()?;
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct AsyncOpenAiModel<C: Config> {
    client: Client<C>,
    model: Text,
    schema_support: SchemaSupport,
}

impl<C: Config> AsyncOpenAiModel<C> {
    /// Creates a model of this client. A request may name another model.
    pub fn new(client: Client<C>, model: impl Into<Text>) -> Self {
        Self { client, model: model.into(), schema_support: SchemaSupport::JsonSchema }
    }

    /// Sets how much of a response format the server enforces. By default it is a whole schema, as with OpenAI.
    pub fn with_schema_support(self, schema_support: SchemaSupport) -> Self {
        Self { schema_support, ..self }
    }

    async fn events(&self, body: Body) -> Result<StreamResponse<Value>, OpenAIError> {
        let chat = self.client.chat();
        #[cfg(feature = "byot")]
        return chat.create_stream_byot(body.json).await;
        #[cfg(not(feature = "byot"))]
        {
            let events = chat.create_stream(body.request).await?;
            Ok(Box::pin(events.map(|event| serde_json::to_value(event?).map_err(unwritable))))
        }
    }
}

#[cfg(not(feature = "byot"))]
fn unwritable(error: serde_json::Error) -> OpenAIError {
    OpenAIError::JSONDeserialize(error, String::new())
}

#[async_trait]
impl<C: Config + 'static> ChatModel for AsyncOpenAiModel<C> {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let body = body(&request, &self.model)?;
        let failures = Failures::new(self.client.config());
        let settings = request.aggregator_settings();
        let converter = Converter::new(Arc::clone(&body.names));
        let events = self.events(body).await.map_err(|error| failures.of_request(error))?;
        let aggregator = MessageAggregator::with_settings(request.round, settings);
        Ok(ChunkStream::from_deltas(aggregator, deltas(events, converter, failures)))
    }

    fn name(&self) -> &str {
        "async-openai"
    }

    fn model_name(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn schema_support(&self) -> SchemaSupport {
        self.schema_support
    }
}

/// Returns the deltas of the events. Nothing after an error is read.
fn deltas(
    events: StreamResponse<Value>,
    mut converter: Converter,
    failures: Failures,
) -> impl Stream<Item = Result<advisor_core::Delta>> + Send {
    events.flat_map(move |event| {
        let mut deltas = Vec::new();
        let end: Result<(), Error> = match event {
            Ok(event) => converter.convert(&event, &mut deltas, &failures),
            Err(error) => {
                failures.event_of(error).and_then(|event| converter.convert(&event, &mut deltas, &failures))
            }
        };
        stream::iter(deltas.into_iter().map(Ok).chain(end.err().map(Err)))
    })
}

/// Shows the name of the model only: a client may have secrets.
impl<C: Config> fmt::Debug for AsyncOpenAiModel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncOpenAiModel").field("model", &self.model).finish_non_exhaustive()
    }
}
