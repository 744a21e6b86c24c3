//! The suite that every store passes.

use std::sync::Arc;

use advisor_conformance::store::{
    a_takeover_passes_no_turn_that_waited_long, law_m3, what_was_acknowledged_is_found_when_reopened,
};
use chat_memory_postgres::PostgresStore;
use conversation_store::ConversationStore;

use crate::support::{Place, server};

advisor_conformance::store_conformance!(match server() {
    Some(url) => PostgresStore::connect(&url).await.unwrap(),
    None => return,
});

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_postgres_append_is_atomic_ordered_idempotent_versioned() {
    let Some(place) = Place::new() else { return };
    law_m3(Arc::new(place.store(4).await)).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_postgres_what_was_acknowledged_is_found_when_reopened() {
    let Some(place) = Place::new() else { return };
    let open = async || Arc::new(place.store(2).await) as Arc<dyn ConversationStore>;
    what_was_acknowledged_is_found_when_reopened(open).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_lets_no_takeover_pass_a_turn_that_waited_long() {
    let Some(place) = Place::new() else { return };
    a_takeover_passes_no_turn_that_waited_long(Arc::new(place.store(2).await)).await;
    place.remove().await;
}
