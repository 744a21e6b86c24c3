//! `Watched`: a model whose answers, failures and latency are noted.

use std::sync::Arc;

use advisor_core::{
    Attempts, ChatModel, ChatRequest, ChunkStream, ConversationKey, Error, ErrorKind, Result, SchemaSupport,
    async_trait,
};
use tokio::time::Instant;

use super::{RouteOrder, Shared};

/// The model of a route, whose answers and failures are noted.
pub(super) struct Watched {
    pub(super) shared: Arc<Shared>,
    pub(super) route: usize,
    pub(super) model: Arc<dyn ChatModel>,
    /// The conversation that stays with the model, if it answers.
    pub(super) conversation: Option<ConversationKey>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for Watched {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (begun, round) = (Instant::now(), request.round);
        let first = self.model.stream(request).await;
        let watch = Watch { shared: Arc::clone(&self.shared), route: self.route, round };
        let stream = ChunkStream::from_attempts(first, watch).await?;
        let (shared, route, conversation) = (Arc::clone(&self.shared), self.route, self.conversation.clone());
        let stream = stream.on_completed(move |response| async move {
            shared.note_answer(route, conversation.as_ref());
            Ok(response)
        });
        Ok(match self.shared.order {
            RouteOrder::Latency => {
                let (shared, mut begun) = (Arc::clone(&self.shared), Some(begun));
                stream.inspect_chunks(move |_| {
                    if let Some(begun) = begun.take() {
                        shared.with_health(route, |health| health.note_first_chunk(begun.elapsed()));
                    }
                })
            }
            _ => stream,
        })
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

/// Notes the error of an attempt. It makes no further attempt.
struct Watch {
    shared: Arc<Shared>,
    route: usize,
    round: u32,
}

#[async_trait]
impl Attempts for Watch {
    fn can_follow(&self, error: &Error) -> bool {
        if concerns_the_server(error) {
            self.shared.note_failure(self.route, error);
        }
        false
    }

    async fn open_next(&mut self, error: Error) -> Result<ChunkStream> {
        Err(error)
    }

    /// So that errors after output are seen, too.
    fn voids(&self) -> Option<u32> {
        Some(self.round)
    }
}

/// Checks whether other requests to the same model are likely to fail, too.
fn concerns_the_server(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RateLimited { .. }
            | ErrorKind::Authentication
            | ErrorKind::NotFound
            | ErrorKind::Provider { .. }
            | ErrorKind::Connection
            | ErrorKind::Timeout
            | ErrorKind::Truncated
            | ErrorKind::Protocol { .. }
    )
}
