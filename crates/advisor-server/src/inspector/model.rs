//! `InspectedModel`: a model whose calls are recorded.

use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport, async_trait};

use super::journal::TurnJournal;
use super::pass::{Part, Pass};

/// A model whose calls are recorded.
pub(super) struct InspectedModel(pub(super) Arc<dyn ChatModel>);

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl ChatModel for InspectedModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let Some(journal) = TurnJournal::from_turn(&request.turn) else {
            return self.0.stream(request).await;
        };
        let mut pass = Pass::begin(journal, Part::Model { round: request.round });
        let stream = self.0.stream(request).await?;
        Ok(stream.inspect_chunks(move |chunk| pass.see(chunk)))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.0.model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.0.schema_support()
    }
}
