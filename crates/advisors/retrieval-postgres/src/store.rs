//! `PostgresVectors`: its opening, its index, the store operations and their statements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Embedding, async_trait};
use advisor_postgres::{Schema, ServerError, TIMEOUT, connection, give_back, pool};
use common_advisors::retrieval::{Document, EmbeddedDocument, Filter, VectorError, VectorStore};
use deadpool_postgres::{Client, Pool};
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use crate::SetupError;
use crate::condition::where_filter;
use crate::connection::run;
use crate::migrations::prepare;
use crate::rows::{Columns, document, text_of, unavailable, without_nul};
use crate::schema::Names;
use crate::setup_error::refused;
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
/// let embedding = Embedding::new([0.6, 0.8])?;
/// store.upsert("acme", vec![EmbeddedDocument { document, embedding }]).await?;
///
/// let filter = Filter::in_tenant("acme").with_equal("language", "en");
/// let found = store.search(&Embedding::new([1.0, 0.0])?, 3, &filter).await?;
/// assert_eq!(found[0].id.as_str(), "hours");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresVectors {
    pool: Pool,
    names: Arc<Names>,
    dimensions: usize,
    timeout: Duration,
    candidates: u16,
}

/// The maximum number of dimensions that the extension stores.
const MOST_DIMENSIONS: usize = 16_000;

impl PostgresVectors {
    /// Connects to the database at this address, such as `postgres://user:password@host:5432/database`, and
    /// prepares the schema `advisor_vectors` in it for embeddings of this number of dimensions.
    ///
    /// It uses up to 16 connections, without TLS, and refuses an address with `sslmode=require`. For TLS, another
    /// schema or another number of connections, create a pool and pass it to [`PostgresVectors::from_pool`].
    ///
    /// # Errors
    /// [`SetupError`]; its text never contains the password.
    pub async fn connect(address: &str, dimensions: usize) -> Result<Self, SetupError> {
        Self::from_pool(pool(address)?, "advisor_vectors", dimensions).await
    }

    /// Takes connections from the caller's pool, and prepares the schema of this name in their database. Stores in
    /// different schemas of one database share nothing.
    ///
    /// The extension `vector` is created if it is missing and the role may create it. The pool decides how connections
    /// are made: their number, TLS, timeouts. A role with only read and write access to the table can use a schema that
    /// another role prepared. All connections must lead to one server that accepts writes. A pooler in between may be in
    /// transaction mode.
    ///
    /// # Errors
    /// [`SetupError::NoExtension`] and [`SetupError::OldExtension`] if the database does not have pgvector from 0.8 on.
    /// [`SetupError::Dimensions`] if the schema has documents of other dimensions. [`SetupError::Database`] for the name of
    /// a schema that [is not allowed](Schema::new), for a schema of a newer version or with other tables, and for a server
    /// that cannot be reached or does not answer within 30 seconds.
    ///
    /// # Example
    /// ```no_run
    /// use retrieval_postgres::deadpool_postgres::tokio_postgres::NoTls;
    /// use retrieval_postgres::deadpool_postgres::{Manager, Pool};
    /// use retrieval_postgres::PostgresVectors;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A TLS connector in the place of `NoTls`.
    /// let manager = Manager::new("host=db.example user=app dbname=app".parse()?, NoTls);
    /// let pool = Pool::builder(manager).max_size(4).build()?;
    /// let manuals = PostgresVectors::from_pool(pool, "manuals", 1_536).await?;
    /// println!("{manuals:?}");
    /// # Ok(()) }
    /// ```
    pub async fn from_pool(pool: Pool, schema: &str, dimensions: usize) -> Result<Self, SetupError> {
        let schema = Schema::new(schema)?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(SetupError::Unstorable { found: dimensions });
        }
        // The server may accept the connection and stay silent, or another client may hold the lock of the
        // migrations.
        let prepared = timeout(TIMEOUT, prepare(&pool, schema, dimensions)).await;
        let names = prepared.map_err(|_| refused(ServerError::silent()))??;
        let names = Arc::new(names);
        Ok(Self { pool, names, dimensions, timeout: TIMEOUT, candidates: 40 })
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 30 seconds. The server
    /// ends a statement after this time, too.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// The maximum number of dimensions of an index.
const MOST_INDEXED: usize = 2_000;

/// The first half of the key of the advisory lock of those who create an index in one schema.
const INDEX_LOCK: i32 = 0x6164_7669;

const CREATE: &str = "CREATE INDEX IF NOT EXISTS documents_embedding ON {schema}.documents \
    USING hnsw (embedding {vector}.vector_cosine_ops)";

// Without statistics the server takes small tenants for large ones, and reads the index in vain for them.
const ANALYZE: &str = "ANALYZE {schema}.documents";

impl PostgresVectors {
    /// Creates an index (HNSW, by cosine) for the embeddings of all tenants, unless there is one. It also updates the
    /// server's statistics of the documents.
    ///
    /// The server then chooses by its statistics for each search. It reads all documents of a small tenant, and takes the
    /// closest ones of a large tenant from the index. A search by the index is approximate: it may miss documents, in particular those
    /// with equal embeddings, and those of a filter that few documents pass. [`with_candidates`](Self::with_candidates)
    /// makes it more exact. A search that finds fewer documents than its limit is repeated without the index.
    ///
    /// Updates wait while the server creates the index, which can take minutes for many documents. The timeout of the
    /// store does not apply. The right to create it is that of the table's owner.
    ///
    /// To keep updates going, create it beside the store. A search knows it by this name:
    ///
    /// ```sql
    /// CREATE INDEX CONCURRENTLY documents_embedding ON advisor_vectors.documents USING hnsw (embedding vector_cosine_ops);
    /// ANALYZE advisor_vectors.documents;
    /// ```
    ///
    /// For a filter that few documents pass, an index of your own can help, such as one on
    /// `(tenant, (metadata -> 'language'))`.
    ///
    /// # Cancellation
    /// A dropped future closes its connection. The server may still create the index.
    ///
    /// # Errors
    /// [`SetupError::TooManyForIndex`] for more than 2,000 dimensions, and [`SetupError::Database`] for errors of the
    /// server.
    pub async fn create_index(&self) -> Result<(), SetupError> {
        if self.dimensions > MOST_INDEXED {
            return Err(SetupError::TooManyForIndex { found: self.dimensions });
        }
        let mut client = connection(&self.pool, self.timeout).await.map_err(refused)?;
        let created = self.create_in(&mut client).await;
        give_back(client, created).map_err(refused)
    }

    async fn create_in(&self, client: &mut Client) -> Result<(), Error> {
        let transaction = client.transaction().await?;
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
        // Of several that find no index, one creates it, and the others wait and find it.
        transaction
            .execute(
                "SELECT pg_advisory_xact_lock($1, hashtext($2))",
                &[&INDEX_LOCK, &self.names.schema.name()],
            )
            .await?;
        transaction.batch_execute(&self.names.in_sql(CREATE)).await?;
        transaction.batch_execute(&self.names.in_sql(ANALYZE)).await?;
        transaction.commit().await
    }

    /// Sets the number of candidates that a search takes from an index at first, from 1 to 1,000; 40 by default. More candidates make
    /// it slower, and it misses fewer documents.
    ///
    /// It takes further ones until enough documents pass the filter, but not more than `hnsw.max_scan_tuples` of the
    /// server.
    #[must_use]
    pub fn with_candidates(self, number: u16) -> Self {
        Self { candidates: number.clamp(1, 1_000), ..self }
    }
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
        Ok(usize::try_from(number.map_err(unavailable)?).unwrap_or(usize::MAX))
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
        run(&self.pool, self.timeout, settings, &statement).await.map_err(unavailable)
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
            .field("schema", &self.names.schema.name())
            .field("dimensions", &self.dimensions)
            .field("connections", &connections)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test(start_paused = true)]
    async fn connecting_to_silent_server_times_out() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        // The driver's own timeout covers only connecting.
        let address = format!("postgres://a:canary@127.0.0.1:{port}/b?connect_timeout=3600");
        let opened = timeout(Duration::from_secs(600), PostgresVectors::connect(&address, 3)).await;
        let error = opened.expect("a bound").expect_err("no server");
        assert!(
            matches!(&error, SetupError::Database(_)) && !format!("{error:?}").contains("canary"),
            "{error:?}"
        );
    }
}
