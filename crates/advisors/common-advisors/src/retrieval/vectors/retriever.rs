//! `VectorRetriever`: finds documents by the similarity of embeddings.

use std::fmt;
use std::sync::Arc;

use advisor_core::{EmbeddingModel, Result, async_trait};

use super::VectorStore;
use crate::retrieval::{Document, Filter, Query, Retriever};

/// Finds documents by the similarity of their embeddings to that of the query. Cheap to clone.
///
/// It searches the tenant of the conversation; [`filter`](Self::filter) changes that.
///
/// # Example
/// ```
/// use std::sync::Arc;
///
/// use advisor_testkit::WordEmbeddings;
/// use common_advisors::retrieval::{Document, Filter, InMemoryVectors, Query, Retriever, VectorRetriever, VectorStore, embed_documents};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let (model, store) = (WordEmbeddings::new(), InMemoryVectors::new());
/// let documents = [Document::new("hours", "The shop opens at nine.").with_metadata("language", "en")];
/// store.upsert("shared", embed_documents(&model, documents).await?).await?;
///
/// let retriever = VectorRetriever {
///     limit: 3,
///     min_score: Some(0.2),
///     filter: Arc::new(|_| Filter::in_tenant("shared").with_equal("language", "en")),
///     ..VectorRetriever::new(model, store)
/// };
/// assert_eq!(retriever.retrieve(Query::new("When does the shop open?")).await?.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..VectorRetriever::new(…)`")]
pub struct VectorRetriever {
    /// The model that embedded the documents.
    pub embeddings: Arc<dyn EmbeddingModel>,
    /// The documents.
    pub store: Arc<dyn VectorStore>,
    /// The maximum number of documents.
    pub limit: usize,
    /// The minimum similarity, from -1 to 1. Useful values depend on the embedding model.
    pub min_score: Option<f32>,
    /// The searched documents of a query. The filter decides about the tenant, too.
    pub filter: Arc<dyn Fn(&Query) -> Filter + Send + Sync>,
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
