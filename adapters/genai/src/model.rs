//! `GenaiModel`: a model that a client of genai asks.

use std::fmt;

use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, Delta, MessageAggregator, Result, SchemaSupport, Text, async_trait,
};
use futures::{Stream, StreamExt, stream};
use genai::chat::{ChatStream, ChatStreamEvent};
use genai::{Client, ModelSpec, ServiceTarget};

use crate::convert::Converter;
use crate::error::Failures;
use crate::request::{Prepared, prepared};

/// A model that a client of genai asks.
///
/// # Ordering
/// Chunks come as the client reads them. The future ends with the first event of the answer, so a refused request is
/// an error of the future.
///
/// # Cancellation
/// Dropping the future or the stream ends the request: the client closes its connection.
///
/// # Errors
/// Each has a kind; a server's words are in its source, without the key of the client. To find the key, the client's
/// resolvers run again after a failure. An answer that ends without a finish reason is `Truncated`. An option that the
/// client cannot send is an error of kind `Configuration`.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use genai::Client;
/// use model_genai::GenaiModel;
///
/// let model = GenaiModel::new(Client::new()?, "claude-sonnet-4-6");
/// let client = ChatClient::builder(model).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct GenaiModel {
    client: Client,
    spec: ModelSpec,
    name: Text,
    schema_support: SchemaSupport,
    sends_reasoning: bool,
}

impl GenaiModel {
    /// Creates a model of this client: a name, or a name with its adapter or its target. A request may name another
    /// model, of the same adapter or target if there is one.
    pub fn new(client: Client, model: impl Into<ModelSpec>) -> Self {
        let spec = model.into();
        let name = match &spec {
            ModelSpec::Name(name) => name.to_string(),
            ModelSpec::Iden(model) => model.model_name.to_string(),
            ModelSpec::Target(target) => target.model.model_name.to_string(),
        };
        let (name, schema_support) = (name.into(), SchemaSupport::None);
        Self { client, spec, name, schema_support, sends_reasoning: false }
    }

    /// Sets how much of a response format the server enforces. By default it is nothing, since it depends on the
    /// server: then the prompt describes the form.
    pub fn with_schema_support(self, schema_support: SchemaSupport) -> Self {
        Self { schema_support, ..self }
    }

    /// Sets whether reasoning of earlier answers is sent back as text. Some servers demand it, others refuse it; the
    /// default is no. Signed reasoning is sent back in any case.
    pub fn with_reasoning_sent_back(self, sends_reasoning: bool) -> Self {
        Self { sends_reasoning, ..self }
    }

    /// Returns the model of this name. A target keeps its endpoint and its key.
    fn spec_of(&self, name: &str) -> ModelSpec {
        match &self.spec {
            ModelSpec::Name(_) => ModelSpec::from_name(name),
            ModelSpec::Iden(model) => ModelSpec::Iden(model.from_name(name)),
            ModelSpec::Target(target) => {
                ModelSpec::Target(ServiceTarget { model: target.model.from_name(name), ..target.clone() })
            }
        }
    }
}

#[async_trait]
impl ChatModel for GenaiModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let asked = request.options.model.as_ref();
        let spec = asked.map_or_else(|| self.spec.clone(), |name| self.spec_of(name));
        let format = format!("genai/{}", asked.unwrap_or(&self.name));
        let Prepared { request: prompt, options, names } = prepared(&request, &format, self.sends_reasoning)?;
        let failures = Failures::new(self.client.clone(), spec.clone());
        let answer = match self.client.exec_chat_stream(spec, prompt, Some(&options)).await {
            Ok(answer) => answer,
            Err(error) => return Err(failures.of(error).await),
        };
        let mut events = answer.stream;
        let first = match first_of(&mut events).await {
            Some(Err(error)) => return Err(failures.of(error).await),
            Some(Ok(event)) => Some(Ok(event)),
            None => None,
        };
        let events = stream::iter(first).chain(events);
        let converter = Converter::new(names, format.into(), answer.model_iden.model_name.to_string().into());
        let aggregator = MessageAggregator::with_settings(request.round, request.aggregator_settings());
        Ok(ChunkStream::from_deltas(aggregator, deltas(events, converter, failures)))
    }

    fn name(&self) -> &str {
        "genai"
    }

    fn model_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn schema_support(&self) -> SchemaSupport {
        self.schema_support
    }
}

/// Waits for the first event of the answer. The client sends the request when it is asked for events.
async fn first_of(events: &mut ChatStream) -> Option<genai::Result<ChatStreamEvent>> {
    while let Some(event) = events.next().await {
        if !matches!(event, Ok(ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)) {
            return Some(event);
        }
    }
    None
}

/// Returns the deltas of the events. Nothing after an error is read.
fn deltas(
    events: impl Stream<Item = genai::Result<ChatStreamEvent>> + Send + 'static,
    mut converter: Converter,
    failures: Failures,
) -> impl Stream<Item = Result<Delta>> + Send + 'static {
    let converted = events.map(move |event| event.map(|event| converter.convert(event)));
    let checked = converted.then(move |deltas| {
        let failures = failures.clone();
        async move {
            match deltas {
                Ok(deltas) => Ok(deltas),
                Err(error) => Err(failures.of(error).await),
            }
        }
    });
    checked.flat_map(|deltas| match deltas {
        Ok(deltas) => stream::iter(deltas.into_iter().map(Ok).collect::<Vec<_>>()),
        Err(error) => stream::iter(vec![Err(error)]),
    })
}

/// Shows the name of the model only: a client may have secrets.
impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel").field("model", &self.name).finish_non_exhaustive()
    }
}
