//! `InMemoryVectors`: compares with every document of the tenant; bounded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use advisor_core::{Embedding, Text, async_trait};

use super::{EmbeddedDocument, VectorStore};
use crate::retrieval::{Document, Filter, VectorError};

/// A vector store in this process's memory. Clones share the documents, which end with the process.
///
/// A search compares the embedding with every document of the tenant, so it misses none. Its time grows with their
/// number: use a database for large collections.
///
/// # Ordering
/// As in the contract of [`VectorStore`].
///
/// # Cancellation
/// No operation waits: an update takes effect at its first poll, or never.
///
/// # Errors
/// [`VectorError::Full`] for an update beyond the bound, and [`VectorError::Dimensions`]. The first document of an
/// empty store sets the number of dimensions.
#[derive(Clone)]
pub struct InMemoryVectors {
    documents: Arc<RwLock<Documents>>,
    limit: usize,
}

/// The documents of each tenant by their ids. No tenant is without documents.
#[derive(Default)]
struct Documents(HashMap<Text, BTreeMap<Text, EmbeddedDocument>>);

/// The maximum number of documents of all tenants together.
const MAX_DOCUMENTS: usize = 100_000;

impl InMemoryVectors {
    /// Creates an empty store of at most 100,000 documents, of all tenants together.
    #[must_use]
    pub fn new() -> Self {
        Self { documents: Arc::default(), limit: MAX_DOCUMENTS }
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Checks whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    // Code under the lock leaves whole documents, also if it panics.
    fn read(&self) -> RwLockReadGuard<'_, Documents> {
        self.documents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Documents> {
        self.documents.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Documents {
    fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Returns the number of dimensions of all embeddings.
    fn dimensions(&self) -> Option<usize> {
        let any = self.0.values().next()?.values().next()?;
        Some(any.embedding.len())
    }

    /// Checks that all embeddings have the dimensions of the store, or the same ones if it is empty.
    fn check<'a>(&self, embeddings: impl IntoIterator<Item = &'a Embedding>) -> Result<(), VectorError> {
        let mut dimensions = self.dimensions();
        for found in embeddings.into_iter().map(|embedding| embedding.len()) {
            let expected = *dimensions.get_or_insert(found);
            if found != expected {
                return Err(VectorError::Dimensions { expected, found });
            }
        }
        Ok(())
    }

    /// Returns the number of documents that an update adds.
    fn added(&self, tenant: &str, documents: &[EmbeddedDocument]) -> usize {
        let known = self.0.get(tenant);
        let ids: HashSet<_> = documents.iter().map(|new| &new.document.id).collect();
        ids.into_iter().filter(|id| known.is_none_or(|known| !known.contains_key(*id))).count()
    }
}

#[async_trait]
impl VectorStore for InMemoryVectors {
    async fn upsert(&self, tenant: &str, documents: Vec<EmbeddedDocument>) -> Result<(), VectorError> {
        let mut stored = self.write();
        stored.check(documents.iter().map(|new| &new.embedding))?;
        if stored.len() + stored.added(tenant, &documents) > self.limit {
            return Err(VectorError::Full { limit: self.limit });
        }
        if documents.is_empty() {
            return Ok(());
        }
        let of_tenant = stored.0.entry(tenant.into()).or_default();
        for mut new in documents {
            new.document.score = None;
            of_tenant.insert(new.document.id.clone(), new);
        }
        Ok(())
    }

    async fn search(
        &self,
        embedding: &Embedding,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>, VectorError> {
        let stored = self.read();
        stored.check([embedding])?;
        let of_tenant = stored.0.get(filter.tenant.as_str()).into_iter().flat_map(BTreeMap::values);
        let matching = of_tenant.filter(|known| filter.matches(&filter.tenant, &known.document));
        let scored = matching.filter_map(|known| Some((known.embedding.cosine(embedding)?, &known.document)));
        let mut scored: Vec<_> = scored.collect();
        // The sort is stable, so equally close documents keep the order of their ids.
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        Ok(scored
            .into_iter()
            .take(limit)
            .map(|(score, document)| Document { score: Some(score), ..document.clone() })
            .collect())
    }

    async fn delete(&self, filter: &Filter) -> Result<usize, VectorError> {
        let mut stored = self.write();
        let before = stored.len();
        if let Some(of_tenant) = stored.0.get_mut(filter.tenant.as_str()) {
            of_tenant.retain(|_, known| !filter.matches(&filter.tenant, &known.document));
        }
        stored.0.retain(|_, of_tenant| !of_tenant.is_empty());
        Ok(before - stored.len())
    }
}

impl Default for InMemoryVectors {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the documents.
impl fmt::Debug for InMemoryVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryVectors").field("documents", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(id: &str) -> EmbeddedDocument {
        EmbeddedDocument { document: Document::new(id, "text"), embedding: Embedding::new([1.0]).unwrap() }
    }

    #[tokio::test]
    async fn law_r1_documents_beyond_the_bound_are_refused() {
        let store = InMemoryVectors { limit: 3, ..InMemoryVectors::new() };
        store.upsert("one", vec![document("a"), document("b"), document("b")]).await.unwrap();
        store.upsert("two", vec![document("a")]).await.unwrap();
        store.upsert("one", vec![document("a"), document("b")]).await.unwrap();
        let refused = store.upsert("one", vec![document("a"), document("c")]).await;
        assert!(matches!(refused, Err(VectorError::Full { limit: 3 })), "{refused:?}");
        assert_eq!(store.len(), 3);
        store.delete(&Filter::in_tenant("two")).await.unwrap();
        store.upsert("one", vec![document("c")]).await.unwrap();
    }

    #[tokio::test]
    async fn empty_store_takes_any_dimensions() {
        let store = InMemoryVectors::new();
        store.upsert("one", vec![document("a")]).await.unwrap();
        store.delete(&Filter::in_tenant("one")).await.unwrap();
        let wide = EmbeddedDocument { embedding: Embedding::new([1.0, 2.0]).unwrap(), ..document("b") };
        store.upsert("one", vec![wide]).await.unwrap();
    }
}
