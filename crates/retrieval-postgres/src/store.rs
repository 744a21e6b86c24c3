//! `PostgresVectors`: the store operations and their statements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Embedding, async_trait};
use common_advisors::retrieval::{Document, EmbeddedDocument, Filter, VectorError, VectorStore};
use deadpool_postgres::Pool;
use tokio_postgres::Row;

use crate::condition::where_filter;
use crate::connection::run;
use crate::failure::from_statement;
use crate::names::Names;
use crate::rows::{Columns, document, text_of, without_nul};
use crate::statement::Statement;

/// A vector store in a PostgreSQL database with the extension `vector`. Clones share the connection pool.
///
/// Needs a tokio runtime with I/O and time.
///
/// A search compares the embedding with every document of the tenant that passes the filter, so it misses none. With an
/// [index](Self::create_index) it is faster for large tenants, and may return other documents than the closest ones.
/// Embeddings are stored with the length 1, and the score is the cosine. Metadata are compared as `jsonb`: `1` and `1.0`
/// are equal.
///
/// # Ordering
/// As in the contract of [`VectorStore`]. An update or a deletion is one transaction.
///
/// # Cancellation
/// An update that is dropped after it was sent may still be applied by the server, as a whole. An operation that is
/// dropped before its answer arrives closes its connection; the pool replaces it.
///
/// # Errors
/// - [`VectorError::Dimensions`] for an embedding of other dimensions than those of the store; nothing is sent.
/// - [`VectorError::Refused`] for an update of more than 256 MiB, for a tenant and an id of more than 2,600 bytes
///   together, and for metadata that are nested more than about 120 deep.
/// - [`VectorError::Unavailable`] for errors of the server or of the connection. It does not quote rows or addresses.
///
/// # Example
/// ```no_run
/// use advisor_core::Embedding;
/// use common_advisors::retrieval::{Document, EmbeddedDocument, Filter, VectorStore};
/// use retrieval_postgres::PostgresVectors;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresVectors::connect("postgres://app@127.0.0.1/app", 2).await?;
/// let document = Document::new("hours", "The shop opens at nine.").with_metadata("language", "en");
/// store.upsert("acme", vec![EmbeddedDocument::new(document, Embedding::new([0.6, 0.8])?)]).await?;
///
/// let filter = Filter::in_tenant("acme").with_equal("language", "en");
/// let found = store.search(&Embedding::new([1.0, 0.0])?, 3, &filter).await?;
/// assert_eq!(found[0].id.as_str(), "hours");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresVectors {
    pub(crate) pool: Pool,
    pub(crate) names: Arc<Names>,
    pub(crate) dimensions: usize,
    pub(crate) timeout: Duration,
    pub(crate) candidates: u16,
}

const UPSERT: &str = "INSERT INTO {schema}.documents (tenant, id, body, metadata, embedding) \
    SELECT {tenant}, new.id, new.body, new.metadata::jsonb, new.embedding::{vector}.vector \
    FROM unnest({ids}, {bodies}, {metadata}, {embeddings}) AS new (id, body, metadata, embedding) \
    ON CONFLICT (tenant, id) DO UPDATE SET \
        body = excluded.body, metadata = excluded.metadata, embedding = excluded.embedding";

// An index gives an order by the distance alone, so equally close documents are ordered in a second step. `WITH TIES`
// lets none of them be missing there.
const SEARCH: &str = "SELECT body, 1 - distance AS score FROM (\
        SELECT id, body, embedding {<=>} {embedding}::{vector}.vector AS distance \
        FROM {schema}.documents WHERE {filter} \
        ORDER BY embedding {<=>} {embedding}::{vector}.vector FETCH FIRST ({limit}) ROWS WITH TIES\
    ) AS closest ORDER BY distance, id LIMIT {limit}";

/// Lets the server read the documents of a tenant by their key only.
const WITHOUT_INDEX: &str = "SET LOCAL enable_indexscan = off";

/// Returns a search that finds nothing, at once, unless there is an index.
fn again() -> String {
    SEARCH.replace("{filter}", "{filter} AND to_regclass('{schema}.documents_embedding') IS NOT NULL")
}

const DELETE: &str = "WITH deleted AS (DELETE FROM {schema}.documents WHERE {filter} RETURNING 1) \
    SELECT count(*) AS number FROM deleted";

#[async_trait]
impl VectorStore for PostgresVectors {
    async fn upsert(&self, tenant: &str, documents: Vec<EmbeddedDocument>) -> Result<(), VectorError> {
        for new in &documents {
            self.check(&new.embedding)?;
        }
        if documents.is_empty() {
            return Ok(());
        }
        let tenant = without_nul(tenant);
        let columns = Columns::from_documents(&tenant, documents)?;
        let mut statement = Statement::default();
        let places = [
            ("{tenant}", statement.bind_text(tenant)),
            ("{ids}", statement.bind_texts(columns.ids)),
            ("{bodies}", statement.bind_texts(columns.bodies)),
            ("{metadata}", statement.bind_texts(columns.metadata)),
            ("{embeddings}", statement.bind_texts(columns.embeddings)),
        ];
        self.run("", UPSERT, &places, statement).await.map(drop)
    }

    async fn search(
        &self,
        embedding: &Embedding,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>, VectorError> {
        self.check(embedding)?;
        // An index is read on until enough documents pass the filter. In a strict order it would leave out those that
        // it finds late; the statement orders them.
        let candidates = self.candidates;
        let settings =
            format!("SET LOCAL hnsw.ef_search = {candidates}; SET LOCAL hnsw.iterative_scan = relaxed_order");
        let mut rows = self.closest(&settings, SEARCH, embedding, limit, filter).await?;
        // The server reads an index up to a bound, before which there may be only documents of other tenants.
        if rows.len() < limit {
            let all = self.closest(WITHOUT_INDEX, &again(), embedding, limit, filter).await?;
            rows = if all.len() > rows.len() { all } else { rows };
        }
        rows.iter().map(document).collect()
    }

    async fn delete(&self, filter: &Filter) -> Result<usize, VectorError> {
        let mut statement = Statement::default();
        let places = [("{filter}", where_filter(filter, &mut statement))];
        let rows = self.run("", DELETE, &places, statement).await?;
        let number = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>("number"));
        Ok(usize::try_from(number.map_err(from_statement)?).unwrap_or(usize::MAX))
    }
}

impl PostgresVectors {
    /// Runs a search with these settings.
    async fn closest(
        &self,
        settings: &str,
        sql: &str,
        embedding: &Embedding,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Row>, VectorError> {
        let mut statement = Statement::default();
        let places = [
            ("{filter}", where_filter(filter, &mut statement)),
            ("{embedding}", statement.bind_text(text_of(embedding))),
            ("{limit}", statement.bind_number(i64::try_from(limit).unwrap_or(i64::MAX))),
        ];
        self.run(settings, sql, &places, statement).await
    }

    /// Runs a statement whose places are filled in.
    async fn run(
        &self,
        settings: &str,
        sql: &str,
        places: &[(&str, String)],
        mut statement: Statement,
    ) -> Result<Vec<Row>, VectorError> {
        let names = self.names.in_sql(sql);
        statement.sql = places.iter().fold(names, |sql, (name, place)| sql.replace(name, place));
        run(&self.pool, self.timeout, settings, &statement).await
    }

    fn check(&self, embedding: &Embedding) -> Result<(), VectorError> {
        let (expected, found) = (self.dimensions, embedding.len());
        if expected == found { Ok(()) } else { Err(VectorError::Dimensions { expected, found }) }
    }
}

/// Omits the address.
impl fmt::Debug for PostgresVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.pool.status().size;
        f.debug_struct("PostgresVectors")
            .field("schema", &self.names.schema.as_str())
            .field("dimensions", &self.dimensions)
            .field("connections", &connections)
            .finish_non_exhaustive()
    }
}
