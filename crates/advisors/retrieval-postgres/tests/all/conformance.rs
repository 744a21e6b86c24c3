//! The suite that every vector store passes. A search by an index is approximate, and not part of it.

use std::sync::Arc;

use advisor_conformance::vectors::{self, DIMENSIONS};
use retrieval_postgres::PostgresVectors;

use crate::support::{Place, server};

advisor_conformance::vector_conformance!(match server() {
    Some(url) => PostgresVectors::connect(&url, DIMENSIONS).await.unwrap(),
    None => return,
});

#[tokio::test]
async fn law_m5_postgres_tenants_share_no_vectors() {
    let Some(place) = Place::new() else { return };
    vectors::tenants_share_nothing(Arc::new(place.store(2).await)).await;
    place.remove().await;
}
