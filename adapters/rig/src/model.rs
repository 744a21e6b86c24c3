//! `RigModel`: a completion model of rig as a leaf of a chain.

use std::fmt;

use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, Delta, Error, MessageAggregator, Result, SchemaSupport, async_trait,
};
use futures::{Stream, StreamExt, stream};
use provider_http::redaction::Redaction;
use rig_core::DynModel;
use rig_core::error::ProviderError;
use rig_core::operation::Completion;
use rig_core::streaming::{CompletionStream, Item, StreamEvent};

use crate::convert::Converter;
use crate::error::Failures;
use crate::request::{Prepared, prepared};

/// A completion model of rig.
///
/// # Ordering
/// Text and reasoning come as the model reads them, and each call when it is whole. The future ends with the first
/// event of the answer, so a refused request is an error of the future.
///
/// # Cancellation
/// Dropping the future or the stream ends the request.
///
/// # Errors
/// Each has a kind; a server's words are in its source, without the secrets of [`with_secrets`](Self::with_secrets) and
/// without text that looks like a key. An option that rig or the model cannot send is an error of kind
/// `Configuration`.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use model_rig::RigModel;
/// use rig_core::providers::openai::OpenAI;
///
/// let model = RigModel::new(OpenAI::new("none").chat("gpt-4o-mini"));
/// let client = ChatClient::builder(model).build()?;
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct RigModel {
    model: DynModel<Completion>,
    failures: Failures,
    schema_support: SchemaSupport,
}

impl RigModel {
    /// Creates a model. A request may name another one of the same provider.
    pub fn new(model: impl Into<DynModel<Completion>>) -> Self {
        let failures = Failures::default();
        Self { model: model.into(), failures, schema_support: SchemaSupport::None }
    }

    /// Sets texts that no error may show, such as the key of the model. rig does not tell it.
    pub fn with_secrets(self, secrets: impl IntoIterator<Item = String>) -> Self {
        let redaction = Redaction::new(secrets.into_iter().map(Into::into));
        Self { failures: Failures::new(redaction), ..self }
    }

    /// Sets how much of a response format the server enforces. By default it is nothing, since it depends on the
    /// server: then the prompt describes the form.
    pub fn with_schema_support(self, schema_support: SchemaSupport) -> Self {
        Self { schema_support, ..self }
    }

    /// Returns the format name of data for the requested model.
    fn format(&self, request: &ChatRequest) -> String {
        let model = request.options.model.as_deref().or_else(|| self.model.id()).unwrap_or_default();
        format!("rig/{}/{model}", self.model.name())
    }
}

#[async_trait]
impl ChatModel for RigModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let format = self.format(&request);
        let Prepared { request: prompt, names } = prepared(&request, &format)?;
        let mut answer = self.model.stream(prompt).map_err(|error| self.failures.of(&error))?;
        let first = answer.next().await;
        if let Some(Err(error)) = &first {
            return Err(self.failures.of(error));
        }
        let converter = Converter::new(names, format.into(), answer.partial().origin);
        let reading = Reading { first, answer, converter };
        let aggregator = MessageAggregator::with_settings(request.round, request.aggregator_settings());
        Ok(ChunkStream::from_deltas(aggregator, deltas(reading, self.failures.clone())))
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.model.id()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.schema_support
    }
}

type Read = Option<Result<Item<StreamEvent>, ProviderError>>;

/// An answer that is being read.
struct Reading {
    /// An item that was taken but not converted yet.
    first: Read,
    answer: CompletionStream,
    converter: Converter,
}

/// Returns the deltas of an answer. Nothing after an error is read.
fn deltas(reading: Reading, failures: Failures) -> impl Stream<Item = Result<Delta>> + Send + 'static {
    let batches = stream::unfold(Some(reading), move |reading| {
        let failures = failures.clone();
        async move {
            let (result, reading) = step(reading?).await;
            Some((result.map_err(|error| failures.of(&error)), reading))
        }
    });
    batches.flat_map(|batch: Result<Vec<Delta>, Error>| match batch {
        Ok(deltas) => stream::iter(deltas.into_iter().map(Ok).collect::<Vec<_>>()),
        Err(error) => stream::iter(vec![Err(error)]),
    })
}

/// Returns the next deltas, and the rest of the answer if there is any.
async fn step(mut reading: Reading) -> (Result<Vec<Delta>, ProviderError>, Option<Reading>) {
    let item = match reading.first.take() {
        Some(item) => Some(item),
        None => reading.answer.next().await,
    };
    match item {
        Some(Ok(Item::Event(event))) => {
            let deltas = reading.converter.event(event);
            (Ok(deltas), Some(reading))
        }
        // A payload that rig does not know.
        Some(Ok(Item::Unknown(_))) => (Ok(Vec::new()), Some(reading)),
        Some(Err(error)) => (Err(error), None),
        None => {
            let Reading { answer, converter, .. } = reading;
            let ended = match answer.finish().await {
                Ok(response) => match &response.error {
                    Some(text) => Err(ProviderError::Provider(text.clone())),
                    None => Ok(converter.end(&response)),
                },
                Err(error) => Err(error),
            };
            (ended, None)
        }
    }
}

/// Shows the name of the model only.
impl fmt::Debug for RigModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RigModel").field("model", &self.model.id()).finish_non_exhaustive()
    }
}
