//! Tests of the index.

use advisor_core::Embedding;
use common_advisors::retrieval::{Filter, VectorStore};
use retrieval_postgres::{PostgresVectors, SetupError};
use tokio::task::JoinSet;

use crate::support::{Place, USE_INDEX, document, found};

/// Directions that repeat only after the last document.
fn numbers(number: u16) -> [f32; 3] {
    let angle = f32::from(number) * 2.399_963_2;
    let height = f32::from(number) / 1_000.0 - 1.0;
    let radius = (1.0 - height * height).max(0.0).sqrt();
    [radius * angle.cos(), radius * angle.sin(), height]
}

async fn fill(store: &PostgresVectors, tenant: &str, documents: u16) {
    let documents = (1..=documents).map(|number| document(&format!("{number:05}"), numbers(number)));
    store.upsert(tenant, documents.collect()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_create_one_index() {
    let Some(place) = Place::new() else { return };
    let mut creating = JoinSet::new();
    for _ in 0..4 {
        let store = place.store(1).await;
        creating.spawn(async move { store.create_index().await });
    }
    for created in creating.join_all().await {
        created.unwrap();
    }
    let count = "SELECT count(*) FROM pg_indexes WHERE schemaname = '{schema}' AND indexdef LIKE '%hnsw%'";
    assert_eq!(place.number(count).await, 1);
    place.remove().await;
}

#[tokio::test]
async fn index_of_too_many_dimensions_is_refused() {
    let Some(place) = Place::new() else { return };
    let store = PostgresVectors::from_pool(place.pool(1), &place.schema, 3_072).await.unwrap();
    let refused = store.create_index().await;
    assert!(matches!(refused, Err(SetupError::TooManyForIndex { found: 3_072 })), "{refused:?}");
    place.remove().await;
}

/// Searches through the index find what comparing all documents finds, in the same order.
#[tokio::test]
async fn index_finds_closest_documents_of_a_tenant() {
    let Some(mut place) = Place::new() else { return };
    let exact = place.store(1).await;
    fill(&exact, "large", 2_000).await;
    fill(&exact, "small", 20).await;
    exact.create_index().await.unwrap();
    place.config.options(USE_INDEX);
    let indexed = place.store(1).await.with_candidates(200);
    let scans = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes \
        WHERE schemaname = '{schema}' AND indexrelname = 'documents_embedding'";
    assert_eq!(place.number(scans).await, 0);
    for (tenant, limit) in [("large", 10), ("large", 300), ("small", 30)] {
        let filter = Filter::in_tenant(tenant);
        let expected = found(&exact, limit, &filter).await;
        let hits = found(&indexed, limit, &filter).await;
        assert_eq!(hits.len(), expected.len());
        let same = hits.iter().filter(|id| expected.contains(id)).count();
        assert!(same * 100 >= hits.len() * 95, "{same} of {limit}");
    }
    // The connection reports its scans when it is closed, or idle for a while.
    drop(indexed);
    while place.number(scans).await < 3 {
        tokio::task::yield_now().await;
    }
    place.remove().await;
}

/// The server reads the index up to a bound. The closest documents are all of another tenant.
#[tokio::test]
async fn documents_beyond_the_bound_of_an_index_are_found() {
    let Some(mut place) = Place::new() else { return };
    // Sorting costs much, so the server takes the index.
    place.config.options("-c hnsw.max_scan_tuples=500 -c cpu_operator_cost=1");
    let store = place.store(1).await;
    let at = |number: u16, side: f32| [3.0 * side, f32::from(number).cos(), f32::from(number).sin()];
    for (tenant, documents, side) in [("near", 5_000, 1.0), ("far", 1_000, -1.0)] {
        let documents = (1..=documents).map(|number| document(&format!("{number:05}"), at(number, side)));
        store.upsert(tenant, documents.collect()).await.unwrap();
    }
    store.create_index().await.unwrap();
    for (limit, expected) in [(4, 4), (2_000, 1_000)] {
        assert_eq!(found(&store, limit, &Filter::in_tenant("far")).await.len(), expected);
    }
    place.remove().await;
}

/// The server reads all documents of a small tenant, so none is missed. It needs statistics, which the creation of the
/// index updates.
#[tokio::test]
async fn small_tenants_are_searched_without_index() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    place.execute("ALTER TABLE {schema}.documents SET (autovacuum_enabled = off)").await;
    fill(&store, "large", 5_000).await;
    store.upsert("small", vec![document("far", [-1.0, 0.0, 0.0])]).await.unwrap();
    store.create_index().await.unwrap();
    let known = "SELECT count(*) FROM pg_stats WHERE schemaname = '{schema}' AND attname = 'tenant'";
    assert_eq!(place.number(known).await, 1);
    let (asked, small) = (Embedding::new([-2.0, 0.0, 0.0]).unwrap(), Filter::in_tenant("small"));
    let hits = store.search(&asked, 4, &small).await.unwrap();
    assert_eq!((hits.len(), hits[0].score), (1, Some(1.0)));
    place.remove().await;
}
