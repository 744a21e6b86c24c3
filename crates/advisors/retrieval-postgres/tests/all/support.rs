//! Shared parts of the tests.

use std::io::Write as _;
use std::sync::Once;

use advisor_conformance::vectors::DIMENSIONS;
use advisor_core::{Embedding, TurnId};
use common_advisors::retrieval::{Document, EmbeddedDocument, Filter, VectorStore};
use retrieval_postgres::PostgresVectors;
use retrieval_postgres::deadpool_postgres::{Client, Manager, Pool};
use tokio_postgres::{Config, NoTls};

/// The address of the server, or nothing where there is none.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var("ADVISOR_PGVECTOR_URL").ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    if url.is_none() {
        assert!(!required, "ADVISOR_REQUIRE_SERVERS=1, but ADVISOR_PGVECTOR_URL names no database");
        static SAID: Once = Once::new();
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let say = "left out: no PostgreSQL server with pgvector; name a database in ADVISOR_PGVECTOR_URL";
        SAID.call_once(|| drop(writeln!(std::io::stderr(), "{say}")));
    }
    url
}

/// Settings of a connection that make the server read the index, however few documents there are.
pub(crate) const USE_INDEX: &str = "-c enable_sort=off -c enable_seqscan=off -c enable_bitmapscan=off";

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

    /// A store of three dimensions.
    pub(crate) async fn store(&self, connections: usize) -> PostgresVectors {
        PostgresVectors::from_pool(self.pool(connections), &self.schema, DIMENSIONS).await.unwrap()
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

    /// The number that a query returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client().await.query_one(&self.sql(sql), &[]).await.unwrap().get(0)
    }

    pub(crate) async fn remove(self) {
        self.execute("DROP SCHEMA {schema} CASCADE").await;
    }
}

pub(crate) fn document(id: &str, numbers: [f32; DIMENSIONS]) -> EmbeddedDocument {
    let document = Document::new(id, format!("text of {id}"));
    EmbeddedDocument { document, embedding: Embedding::new(numbers).unwrap() }
}

/// The ids of the documents that are found from the first axis.
pub(crate) async fn found(store: &PostgresVectors, limit: usize, filter: &Filter) -> Vec<String> {
    let found = store.search(&Embedding::new([1.0, 0.0, 0.0]).unwrap(), limit, filter).await.unwrap();
    found.iter().map(|document| document.id.to_string()).collect()
}
