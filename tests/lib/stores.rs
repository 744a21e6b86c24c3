//! All stores, and servers that may be absent.

use std::io::Write as _;

use advisor_chain::postgres::PostgresStore;
use advisor_chain::redis::RedisStore;
use tempfile::TempDir;

use crate::prelude::*;

/// The server that this variable names. Otherwise it reports that its tests are left out; with
/// `ADVISOR_REQUIRE_SERVERS=1` it fails.
pub fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    assert!(url.is_some() || !required, "ADVISOR_REQUIRE_SERVERS=1, but {variable} names no server");
    if url.is_none() {
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let _ = writeln!(std::io::stderr(), "left out: {variable} names no server");
    }
    url
}

/// The stores that there are on this machine, by their names.
pub async fn all_stores() -> Vec<(&'static str, Arc<dyn ConversationStore>)> {
    let mut stores: Vec<(_, Arc<dyn ConversationStore>)> = vec![
        ("in memory", Arc::new(InMemoryStore::new())),
        ("SQLite", Arc::new(SqliteStore::in_memory().unwrap())),
    ];
    if let Some(url) = server("ADVISOR_POSTGRES_URL") {
        stores.push(("PostgreSQL", Arc::new(PostgresStore::connect(&url).await.unwrap())));
    }
    if let Some(url) = server("ADVISOR_REDIS_URL") {
        stores.push(("Redis", Arc::new(RedisStore::connect(&url).await.unwrap())));
    }
    stores
}

/// A store in memory and one in a file, which several processes can share.
pub async fn two_stores() -> (Vec<Arc<dyn ConversationStore>>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(folder.path().join("c.sqlite")).await.unwrap();
    (vec![Arc::new(InMemoryStore::new()), Arc::new(file)], folder)
}
