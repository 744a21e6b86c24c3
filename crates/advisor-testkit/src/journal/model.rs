//! `JournalModel`: a model that records the answers of another one.

use std::fmt;

use advisor_core::{ChatModel, ChatRequest, ChunkStream, Result, SchemaSupport};
use async_trait::async_trait;

use super::Journal;
use super::passing::{Link, Passing};

/// A model around another one, which records its answers in a [`Journal`]: `model.ask r1`, `model.first_chunk r1`, and
/// `model.end r1` or `model.drop r1`. See the example of [`JournalAdvisor`](crate::JournalAdvisor).
pub struct JournalModel<M> {
    inner: M,
    journal: Journal,
}

impl<M: ChatModel> JournalModel<M> {
    /// Wraps a model.
    pub fn new(inner: M, journal: &Journal) -> Self {
        Self { inner, journal: journal.clone() }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<M: ChatModel> ChatModel for JournalModel<M> {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let mut passing = Passing::begin(&self.journal, Link::Model { round: request.round });
        let stream = self.inner.stream(request).await?;
        Ok(stream.inspect_chunks(move |chunk| passing.see(chunk)))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.inner.model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.inner.schema_support()
    }
}

impl<M> fmt::Debug for JournalModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalModel").finish_non_exhaustive()
    }
}
