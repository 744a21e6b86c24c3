//! The suite that every vector store passes, without an index and with one.

use std::sync::Arc;

use retrieval::conformance::{self, DIMENSIONS};
use retrieval_postgres::{PostgresVectors, Schema};

use crate::support::{Place, USE_INDEX, server};

retrieval::vector_conformance!(match server() {
    Some(url) => PostgresVectors::connect(&url, DIMENSIONS).await.unwrap(),
    None => return,
});

/// All searches read the index, in one schema whose index has the documents of all clauses.
mod by_index {
    use super::*;

    retrieval::vector_conformance!(match indexed().await {
        Some(store) => store,
        None => return,
    });
}

async fn indexed() -> Option<PostgresVectors> {
    let mut place = Place::new()?;
    place.schema = Schema::new("advisor_vectors_indexed").unwrap();
    place.config.options(USE_INDEX);
    let store = place.store(4).await;
    store.create_index().await.unwrap();
    Some(store)
}

#[tokio::test]
async fn law_m5_postgres_tenants_share_no_vectors() {
    let Some(place) = Place::new() else { return };
    conformance::tenants_share_nothing(Arc::new(place.store(2).await)).await;
    place.remove().await;
}
