//! `FallbackModel`: calls the next model when one fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Attempts, ChatModel, ChatRequest, ChunkStream, Error, ErrorKind, Result, SchemaSupport};

/// A model that falls back to other models when the first fails.
///
/// [`name`](ChatModel::name) and [`model_name`](ChatModel::model_name) return those of the first model, also if
/// another one answers. [`schema_support`](ChatModel::schema_support) returns the lowest of all models.
///
/// # Ordering
/// The models are called in the order in which they were added, each in the same round. A model's own retries,
/// such as after a rate limit, come first.
///
/// Failures are not remembered: each round of a turn calls the first model again, with its retries. So a server that
/// is down delays every round. A first model with fewer retries fails sooner. Those of the provider crates have
/// `with_retries(Backoff::none())`, and `with_timeouts` for a server that does not answer.
///
/// # Cancellation
/// Dropping the future or the stream stops the running call.
///
/// # Errors
/// The next model is called after errors of a model or its provider: rate limits, authentication, provider failures,
/// connections, timeouts, context overflow, unknown models, and answers that are cut off or malformed. An invalid request or
/// history is not among them, since it fails everywhere.
///
/// It is called as long as no part of the answer was shown. After that the error is returned, unless
/// [`with_restart_after_output`](Self::with_restart_after_output) allows a restart. If all models fail, the last
/// error is returned.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChunkStream, Error, ErrorKind, FallbackModel, Result, async_trait};
/// # use advisor_core::{ChatResponse, FinishReason, Message};
///
/// struct Down;
/// #[async_trait]
/// impl ChatModel for Down {
///     async fn stream(&self, _: ChatRequest) -> Result<ChunkStream> {
///         Err(Error::new(ErrorKind::Connection, "the server cannot be reached"))
///     }
/// }
/// # struct Spare;
/// # #[async_trait]
/// # impl ChatModel for Spare {
/// #     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
/// #         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("Here."), FinishReason::Stop)))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let client = ChatClient::builder(FallbackModel::new(Down).with_fallback(Spare)).build()?;
/// assert_eq!(client.prompt().user("Anybody?").call().await?.text(), "Here.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FallbackModel {
    first: Arc<dyn ChatModel>,
    others: Vec<Arc<dyn ChatModel>>,
    /// Whether the next model may start after a part of the answer was shown.
    after_output: bool,
}

impl FallbackModel {
    /// Creates a model that calls `first`.
    pub fn new(first: impl ChatModel) -> Self {
        Self { first: Arc::new(first), others: Vec::new(), after_output: false }
    }

    /// Adds a model that is called if all models before it have failed.
    ///
    /// It uses its own default model: a name in the request's options applies to the first only.
    #[must_use]
    pub fn with_fallback(mut self, next: impl ChatModel) -> Self {
        self.others.push(Arc::new(next));
        self
    }

    /// Allows the next model to start again after a part of the answer was shown.
    ///
    /// [`Chunk::AttemptRestarted`](crate::Chunk::AttemptRestarted) then reports that the output of the round so far is
    /// void. A stream of only the text ([`TurnStream::text`](crate::TurnStream::text)) cannot take text back. If it has
    /// emitted text of this round, it ends with an error of kind [`Configuration`](ErrorKind::Configuration).
    #[must_use]
    pub fn with_restart_after_output(mut self) -> Self {
        self.after_output = true;
        self
    }
}

fn concerns_the_model(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RateLimited { .. }
            | ErrorKind::Authentication
            | ErrorKind::ContextOverflow
            | ErrorKind::NotFound
            | ErrorKind::Provider { .. }
            | ErrorKind::Connection
            | ErrorKind::Timeout
            | ErrorKind::Truncated
            | ErrorKind::Protocol { .. }
    )
}

#[async_trait]
impl ChatModel for FallbackModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let next = self.others.clone().into();
        let first = self.first.stream(request.clone()).await;
        ChunkStream::from_attempts(first, OtherModels { request, next, after_output: self.after_output })
            .await
    }

    fn name(&self) -> &str {
        self.first.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.first.model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        let others = self.others.iter().map(|model| model.schema_support());
        others.fold(self.first.schema_support(), SchemaSupport::min)
    }
}

/// The models that may still answer a request.
struct OtherModels {
    request: ChatRequest,
    next: VecDeque<Arc<dyn ChatModel>>,
    after_output: bool,
}

#[async_trait]
impl Attempts for OtherModels {
    fn can_follow(&self, error: &Error) -> bool {
        !self.next.is_empty() && concerns_the_model(error)
    }

    async fn open_next(&mut self, mut error: Error) -> Result<ChunkStream> {
        while concerns_the_model(&error)
            && let Some(model) = self.next.pop_front()
        {
            tracing::info!(error = ?error.kind(), model = model.name(), "a model failed; asking the next one");
            self.request.options.model = None;
            match model.stream(self.request.clone()).await {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }

    fn voids(&self) -> Option<u32> {
        self.after_output.then_some(self.request.round)
    }
}

impl fmt::Debug for FallbackModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models = std::iter::once(&self.first).chain(&self.others).map(|model| model.name());
        f.debug_list().entries(models).finish()
    }
}
