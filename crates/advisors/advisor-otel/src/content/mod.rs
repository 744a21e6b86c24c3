//! `RecordContent`: a model whose calls have their messages in the exported span.

mod messages;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport, async_trait};
use opentelemetry::trace::TraceContextExt;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::names::{INPUT_MESSAGES, OUTPUT_MESSAGES};

/// The span of a model call.
const MODEL_CALL: &str = "model_call";
/// The default bound of an attribute.
const MAX_BYTES: usize = 64 << 10;

/// A model whose calls have their content in the trace: the messages of the request and of the answer.
///
/// Without it, nothing of a conversation is in a trace. Everything that the model reads and writes is: instructions,
/// texts, reasoning, arguments and results of tools. Bytes of media are not, nor is the query of an address, which may
/// be a key.
///
/// Only the exported span gets it, as JSON, and only if it is recorded; logs do not. An answer that fails or
/// is dropped has no messages.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_otel::RecordContent;
/// # use advisor_testkit::{Answer, ScriptedModel};
///
/// # fn main() -> advisor_core::Result<()> {
/// # let model = ScriptedModel::new([Answer::from_text("Hello.")]);
/// let client = ChatClient::builder(RecordContent::new(model).with_max_bytes(32 << 10)).build()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct RecordContent<M> {
    model: M,
    max_bytes: usize,
}

impl<M: ChatModel> RecordContent<M> {
    /// Wraps `model`; each of the two attributes has at most 64 KiB.
    pub fn new(model: M) -> Self {
        Self { model, max_bytes: MAX_BYTES }
    }

    /// Sets the maximum length of each attribute in bytes.
    ///
    /// A text beyond a quarter of it is cut, and the oldest messages are left out.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }
}

/// Returns the span of the running model call, if it is recorded. Another span must not get the content.
fn recorded_call() -> Option<Span> {
    let span = Span::current();
    let is_call = span.metadata().is_some_and(|metadata| metadata.name() == MODEL_CALL);
    (is_call && span.context().span().is_recording()).then_some(span)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<M: ChatModel> ChatModel for RecordContent<M> {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let Some(span) = recorded_call() else { return self.model.stream(request).await };
        let max_bytes = self.max_bytes;
        span.set_attribute(INPUT_MESSAGES, messages::of_request(&request.messages, max_bytes));
        let stream = self.model.stream(request).await?;
        Ok(stream.on_completed(move |response| async move {
            span.set_attribute(OUTPUT_MESSAGES, messages::of_answer(&response, max_bytes));
            Ok(response)
        }))
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.model.model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.model.schema_support()
    }
}
