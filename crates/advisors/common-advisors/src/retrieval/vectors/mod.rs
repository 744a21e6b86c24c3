//! `VectorStore`, the contract of a store, its `VectorError`, `EmbeddedDocument` and `embed_documents`.

pub(crate) mod filter;
pub(crate) mod in_memory;
pub(crate) mod retriever;

use std::sync::Arc;

use advisor_core::{BoxError, Embedding, EmbeddingModel, Error, ErrorKind, Result, Text, async_trait};

use crate::retrieval::{Document, Filter};

/// Stores documents with their embeddings, and finds those that are close to another embedding.
///
/// All embeddings of a store have the same number of dimensions. Tenants share nothing else: a document is identified
/// by its tenant and its id, and an operation sees one tenant.
///
/// A store passes the suite `vector_conformance!` of the crate `advisor-conformance`.
///
/// # Ordering
/// An operation sees all updates that have returned before it begins. An update is applied completely or not at all.
///
/// # Cancellation
/// An update whose future is dropped is applied completely or not at all. A repeated update changes nothing.
///
/// # Errors
/// See [`VectorError`]. Numbers that are not finite, and vectors without a direction, are no [`Embedding`].
///
/// # Example
/// ```
/// use advisor_core::EmbeddingModel;
/// use advisor_testkit::WordEmbeddings;
/// use common_advisors::retrieval::{Document, Filter, InMemoryVectors, VectorStore, embed_documents};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let (model, store) = (WordEmbeddings::new(), InMemoryVectors::new());
/// let documents = [Document::new("hours", "The shop opens at nine."), Document::new("cats", "Cats sleep.")];
/// store.upsert("acme", embed_documents(&model, documents).await?).await?;
///
/// let question = &model.embed_all(&["When does the shop open?".into()]).await?[0];
/// let found = store.search(question, 1, &Filter::in_tenant("acme")).await?;
/// assert_eq!(found[0].id.as_str(), "hours");
/// assert_eq!(store.delete(&Filter::in_tenant("acme")).await?, 2);
/// # Ok(()) }
/// ```
#[async_trait]
pub trait VectorStore: Send + Sync + 'static {
    /// Stores documents of a tenant, and replaces those with the same id. Of several with one id, the last counts.
    async fn upsert(&self, tenant: &str, documents: Vec<EmbeddedDocument>) -> Result<(), VectorError>;

    /// Returns the closest documents that pass the filter, at most `limit`, the closest first.
    ///
    /// The [`score`](Document::score) is the cosine of the angle, from -1 to 1. Equally close documents are ordered
    /// by their ids.
    async fn search(
        &self,
        embedding: &Embedding,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>, VectorError>;

    /// Deletes the documents that pass the filter, and returns their number.
    async fn delete(&self, filter: &Filter) -> Result<usize, VectorError>;
}

/// A shared store.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: VectorStore + ?Sized> VectorStore for Arc<S> {
    async fn upsert(&self, tenant: &str, documents: Vec<EmbeddedDocument>) -> Result<(), VectorError> {
        (**self).upsert(tenant, documents).await
    }

    async fn search(
        &self,
        embedding: &Embedding,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>, VectorError> {
        (**self).search(embedding, limit, filter).await
    }

    async fn delete(&self, filter: &Filter) -> Result<usize, VectorError> {
        (**self).delete(filter).await
    }
}

/// A document with the embedding of its text. Its score does not count.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "a document and its embedding")]
pub struct EmbeddedDocument {
    /// The document.
    pub document: Document,
    /// The embedding by which it is found.
    pub embedding: Embedding,
}

/// Embeds the texts of documents, to store them.
///
/// # Errors
/// As [`EmbeddingModel::embed_all`].
pub async fn embed_documents(
    model: &dyn EmbeddingModel,
    documents: impl IntoIterator<Item = Document, IntoIter: Send> + Send,
) -> Result<Vec<EmbeddedDocument>> {
    let documents: Vec<_> = documents.into_iter().collect();
    let texts: Vec<Text> = documents.iter().map(|document| document.text.clone()).collect();
    let embeddings = model.embed_all(&texts).await?;
    let pairs = documents.into_iter().zip(embeddings);
    Ok(pairs.map(|(document, embedding)| EmbeddedDocument { document, embedding }).collect())
}

/// The reason why an operation of a vector store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// An embedding has another number of dimensions than those in the store. Nothing was written.
    #[error(
        "the embedding has {found} dimensions, those in the store have {expected}; use the embedding model \
         that the documents were embedded with"
    )]
    Dimensions {
        /// The number of dimensions in the store.
        expected: usize,
        /// The number of dimensions of the embedding.
        found: usize,
    },
    /// The store has reached its bound on documents. Nothing was written.
    #[error("the store takes at most {limit} documents; delete some, or raise its bound")]
    Full {
        /// The bound on documents.
        limit: usize,
    },
    /// The store cannot keep a document as it is. Nothing was written.
    #[error("the store refuses the documents: {reason}")]
    Refused {
        /// The reason, and what to do about it.
        reason: &'static str,
    },
    /// The store is unavailable. An update may have been written: repeat it, which changes nothing else.
    #[error("the vector store is not available")]
    Unavailable {
        /// The cause.
        source: BoxError,
    },
}

impl VectorError {
    /// Creates an `Unavailable` error.
    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::Unavailable { source: source.into() }
    }
}

impl From<VectorError> for Error {
    fn from(error: VectorError) -> Self {
        let kind = match error {
            VectorError::Dimensions { .. } => ErrorKind::Configuration,
            VectorError::Full { .. } | VectorError::Refused { .. } | VectorError::Unavailable { .. } => {
                ErrorKind::Advisor
            }
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}
