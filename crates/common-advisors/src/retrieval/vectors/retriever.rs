//! `VectorRetriever`: finds documents by the similarity of embeddings.

use std::fmt;
use std::sync::Arc;

use advisor_core::{EmbeddingModel, Result, async_trait};

use super::VectorStore;
use crate::retrieval::{Document, Filter, Query, Retriever};

/// Finds documents by the similarity of their embeddings to that of the query. Cheap to clone.
///
/// It searches the tenant of the conversation; [`with_filter`](Self::with_filter) changes that.
///
/// # Example
/// ```
/// use advisor_testkit::WordEmbeddings;
/// use common_advisors::retrieval::{Document, Filter, InMemoryVectors, Query, Retriever, VectorRetriever, VectorStore, embed_documents};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let (model, store) = (WordEmbeddings::new(), InMemoryVectors::new());
/// let documents = [Document::new("hours", "The shop opens at nine.").with_metadata("language", "en")];
/// store.upsert("shared", embed_documents(&model, documents).await?).await?;
///
/// let retriever = VectorRetriever::new(model, store)
///     .with_limit(3)
///     .with_min_score(0.2)
///     .with_filter(|_| Filter::in_tenant("shared").with_equal("language", "en"));
/// assert_eq!(retriever.retrieve(Query::new("When does the shop open?")).await?.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct VectorRetriever {
    embeddings: Arc<dyn EmbeddingModel>,
    store: Arc<dyn VectorStore>,
    limit: usize,
    min_score: Option<f32>,
    filter: Arc<dyn Fn(&Query) -> Filter + Send + Sync>,
}

impl VectorRetriever {
    /// Creates a retriever of at most four documents. The model is the one that embedded the documents.
    pub fn new(embeddings: impl EmbeddingModel, store: impl VectorStore) -> Self {
        Self {
            embeddings: Arc::new(embeddings),
            store: Arc::new(store),
            limit: 4,
            min_score: None,
            filter: Arc::new(|query| Filter::in_tenant(query.tenant())),
        }
    }

    /// Sets the maximum number of documents.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the minimum similarity, from -1 to 1. Useful values depend on the embedding model.
    #[must_use]
    pub fn with_min_score(self, score: f32) -> Self {
        Self { min_score: Some(score), ..self }
    }

    /// Sets the searched documents of each query. The filter decides about the tenant, too.
    #[must_use]
    pub fn with_filter(self, filter: impl Fn(&Query) -> Filter + Send + Sync + 'static) -> Self {
        Self { filter: Arc::new(filter), ..self }
    }
}

#[async_trait]
impl Retriever for VectorRetriever {
    async fn retrieve(&self, query: Query) -> Result<Vec<Document>> {
        let embeddings = self.embeddings.embed_all(std::slice::from_ref(&query.text)).await?;
        let Some(embedding) = embeddings.first() else { return Ok(Vec::new()) };
        let mut found = self.store.search(embedding, self.limit, &(self.filter)(&query)).await?;
        found.retain(|document| self.min_score.is_none_or(|least| document.score >= Some(least)));
        Ok(found)
    }
}

impl fmt::Debug for VectorRetriever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, min_score, .. } = self;
        let mut shown = f.debug_struct("VectorRetriever");
        shown.field("limit", limit).field("min_score", min_score).finish_non_exhaustive()
    }
}
