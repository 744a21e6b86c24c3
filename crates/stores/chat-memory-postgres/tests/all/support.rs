//! Shared parts of the tests.

use std::io::Write as _;
use std::sync::Once;

pub(crate) use advisor_conformance::store::said;
use advisor_core::{ConversationKey, TurnId};
use chat_memory_postgres::PostgresStore;
use chat_memory_postgres::deadpool_postgres::{Client, Manager, Pool};
use tokio_postgres::{Config, NoTls};

/// The address of the server, or nothing where there is none.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var("ADVISOR_POSTGRES_URL").ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    if url.is_none() {
        assert!(!required, "ADVISOR_REQUIRE_SERVERS=1, but ADVISOR_POSTGRES_URL names no database");
        static SAID: Once = Once::new();
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let say = "left out: no PostgreSQL server; name a database in ADVISOR_POSTGRES_URL";
        SAID.call_once(|| drop(writeln!(std::io::stderr(), "{say}")));
    }
    url
}

/// A schema of one test alone.
pub(crate) struct Place {
    pub(crate) config: Config,
    pub(crate) schema: String,
}

impl Place {
    /// A place on the server, or nothing where there is none.
    pub(crate) fn new() -> Option<Self> {
        let config = server()?.parse().unwrap();
        let name = format!("test_{}", String::from(TurnId::random()).replace('-', "_"));
        Some(Self { config, schema: name })
    }

    pub(crate) fn pool(&self, connections: usize) -> Pool {
        let manager = Manager::new(self.config.clone(), NoTls);
        Pool::builder(manager).max_size(connections).build().unwrap()
    }

    pub(crate) async fn store(&self, connections: usize) -> PostgresStore {
        PostgresStore::from_pool(self.pool(connections), &self.schema).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        self.pool(1).get().await.unwrap()
    }

    /// This SQL with the schema's name in it.
    pub(crate) fn sql(&self, sql: &str) -> String {
        sql.replace("{schema}", &self.schema)
    }

    /// Runs SQL in the schema, around the store.
    pub(crate) async fn execute(&self, sql: &str) {
        self.client().await.batch_execute(&self.sql(sql)).await.unwrap();
    }

    pub(crate) async fn remove(self) {
        self.execute("DROP SCHEMA {schema} CASCADE").await;
    }
}

pub(crate) fn key(conversation: &str) -> ConversationKey {
    ConversationKey::new(conversation).unwrap()
}
