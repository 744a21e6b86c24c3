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
}
