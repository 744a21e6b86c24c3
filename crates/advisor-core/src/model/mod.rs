//! `ChatModel`, the innermost link, and `SchemaSupport`.

pub(crate) mod embedding_model;
pub(crate) mod fallback_model;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{ChatRequest, ChunkStream, Result};

/// The innermost link: turns a request into chunks.
///
/// # Ordering
/// The stream's last item is the completed response, numbered `request.round`. Models build the stream with
/// [`ChunkStream::from_deltas`], the only place where an answer is aggregated.
///
/// # Cancellation
/// Dropping the future or the stream stops the call, down to the connection.
///
/// # Errors
/// An error of the future means that nothing was shown; after one inside the stream, something may have been
/// shown. The error kind says how the caller can react.
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
    /// Calls the model.
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream>;

    /// Returns the model's name in traces, such as the provider's name.
    fn name(&self) -> &str {
        "model"
    }

    /// Returns the default model, used where a request names none, for traces. A wrapper returns that of the
    /// wrapped model.
    fn model_name(&self) -> Option<&str> {
        None
    }

    /// Returns how much of the response format the server enforces.
    fn schema_support(&self) -> SchemaSupport {
        SchemaSupport::None
    }
}

/// The part of the response format that a server enforces, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SchemaSupport {
    /// Nothing: the prompt describes the form.
    #[default]
    None,
    /// The answer is a JSON object ([`ResponseFormat::JsonObject`](crate::ResponseFormat::JsonObject)).
    JsonObject,
    /// The answer fits a schema ([`ResponseFormat::JsonSchema`](crate::ResponseFormat::JsonSchema)), in requests
    /// without tools only: the server's grammar leaves a model no way to call one.
    JsonSchemaWithoutTools,
    /// The answer fits a schema, also in requests with tools.
    JsonSchema,
}

/// A shared model.
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
