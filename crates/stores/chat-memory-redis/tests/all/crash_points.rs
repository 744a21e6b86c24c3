//! Turns that are stopped at each of their await points, or whose store fails there, on a real server.

use chat_memory_redis::RedisStore;

use crate::support::server;

advisor_conformance::crash_points_of_store!(match server() {
    Some(url) => RedisStore::connect(&url).await.unwrap(),
    None => return,
});
