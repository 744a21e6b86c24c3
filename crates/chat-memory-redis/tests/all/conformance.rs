//! The suite that every store passes: on a server by itself, on a cluster, and through the driver's own ways.

mod alone {
    use chat_memory_redis::RedisStore;

    use crate::support::server;

    chat_memory_advisor::conformance!(match server() {
        Some(url) => RedisStore::connect(&url).await.unwrap(),
        None => return,
    });
}

/// A cluster refuses scripts whose keys are in several slots.
mod in_a_cluster {
    use chat_memory_redis::redis::cluster::ClusterClient;
    use chat_memory_redis::{Prefix, RedisStore};

    use crate::support::cluster;

    chat_memory_advisor::conformance!(match cluster() {
        Some(url) => {
            let connection = ClusterClient::new([url]).unwrap().get_async_connection().await.unwrap();
            RedisStore::from_connection(connection, Prefix::default()).await.unwrap()
        }
        None => return,
    });
}

/// The same node through a connection that knows nothing of clusters: nothing is put right on the way.
mod on_a_node {
    use chat_memory_redis::RedisStore;

    use crate::support::cluster;

    chat_memory_advisor::conformance!(match cluster() {
        Some(url) => RedisStore::connect(&url).await.unwrap(),
        None => return,
    });
}
