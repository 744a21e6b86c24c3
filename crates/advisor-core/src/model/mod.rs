pub(crate) mod fallback_model;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{ChatRequest, ChunkStream, Result};

/// The innermost link: turns a request into chunks.
///
/// # Ordering
/// The stream's last item is the completed response, numbered `request.round`. Models make it with
/// [`ChunkStream::from_deltas`], the one place where an answer is aggregated.
///
/// # Cancellation
/// Dropping the future or the stream stops the call, down to the connection.
///
/// # Errors
/// An error of the future means that nothing was shown; one inside the stream means that something may
/// have been. Both carry a kind that says what can be done.
///
/// # Example
/// ```
/// use advisor_core::{ChatModel, ChatRequest, ChunkStream, Delta, FinishReason, MessageAggregator, Result, async_trait};
/// use futures::stream;
///
/// struct Parrot;
///
/// #[async_trait]
/// impl ChatModel for Parrot {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         let deltas = stream::iter([Ok(Delta::text(said)), Ok(Delta::finish(FinishReason::Stop))]);
///         let aggregator = MessageAggregator::with_settings(request.round, request.aggregator_settings());
///         Ok(ChunkStream::from_deltas(aggregator, deltas))
///     }
/// }
/// ```
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// Asks the model.
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream>;

    /// What the model is called in traces, such as the provider's name.
    fn name(&self) -> &str {
        "model"
    }

    /// The model that answers where a request names none, for traces. A model around another gives that one's.
    fn model_name(&self) -> Option<&str> {
        None
    }

    /// Returns how much of the form of an answer the server enforces.
    fn schema_support(&self) -> SchemaSupport {
        SchemaSupport::None
    }
}

/// How much of the form of an answer a server enforces, from nothing to everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SchemaSupport {
    /// Nothing: the form is asked for in words.
    #[default]
    None,
    /// That it is a JSON object ([`ResponseFormat::JsonObject`](crate::ResponseFormat::JsonObject)).
    JsonObject,
    /// That it fits a schema ([`ResponseFormat::JsonSchema`](crate::ResponseFormat::JsonSchema)), in requests that offer no
    /// tools: the server's grammar leaves a model no way to call one.
    JsonSchemaWithoutTools,
    /// That it fits a schema, also where tools are offered.
    JsonSchema,
}

/// A model that others hold as well.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        (**self).stream(request).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn model_name(&self) -> Option<&str> {
        (**self).model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        (**self).schema_support()
    }
}
