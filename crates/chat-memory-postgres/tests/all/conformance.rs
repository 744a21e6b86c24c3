//! The suite that every store passes.

use chat_memory_postgres::PostgresStore;

use crate::support::server;

chat_memory_advisor::conformance!(match server() {
    Some(url) => PostgresStore::connect(&url).await.unwrap(),
    None => return,
});
