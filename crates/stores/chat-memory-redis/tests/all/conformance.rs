//! Runs the conformance suite on a single server, on a cluster, and over the connection types of the driver.

use std::sync::Arc;

use advisor_conformance::store::{
    a_takeover_passes_no_turn_that_waited_long, law_m3, what_was_acknowledged_is_found_when_reopened,
};
use conversation_store::ConversationStore;

use crate::support::Place;

mod alone {
    use chat_memory_redis::RedisStore;

    use crate::support::server;

    advisor_conformance::store_conformance!(match server() {
        Some(url) => RedisStore::connect(&url).await.unwrap(),
        None => return,
    });
}

/// A cluster refuses scripts whose keys are in several slots.
mod in_a_cluster {
    use chat_memory_redis::redis::cluster::ClusterClient;
    use chat_memory_redis::{RedisServer, RedisStore};

    use crate::support::cluster;

    advisor_conformance::store_conformance!(match cluster() {
        Some(url) => {
            let connection = ClusterClient::new([url]).unwrap().get_async_connection().await.unwrap();
            RedisStore::from_server(RedisServer::from_connection(connection, "advisor").await.unwrap())
        }
        None => return,
    });
}

/// The same node through a connection that knows nothing of clusters: nothing is put right on the way.
mod on_a_node {
    use chat_memory_redis::RedisStore;

    use crate::support::cluster;

    advisor_conformance::store_conformance!(match cluster() {
        Some(url) => RedisStore::connect(&url).await.unwrap(),
        None => return,
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_redis_append_is_atomic_ordered_idempotent_versioned() {
    let Some(place) = Place::new() else { return };
    law_m3(Arc::new(place.store().await)).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_redis_what_was_acknowledged_is_found_when_reopened() {
    let Some(place) = Place::new() else { return };
    let open = async || Arc::new(place.store().await) as Arc<dyn ConversationStore>;
    what_was_acknowledged_is_found_when_reopened(open).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_lets_no_takeover_pass_a_turn_that_waited_long() {
    let Some(place) = Place::new() else { return };
    a_takeover_passes_no_turn_that_waited_long(Arc::new(place.store().await)).await;
    place.remove().await;
}
