//! `create_index`: the HNSW index on request, and the candidates of a search.

use crate::connection::client;
use crate::failure::from_statement;
use crate::{PostgresVectors, SetupError};
use deadpool_postgres::Client;
use scopeguard::{ScopeGuard, guard};
use tokio_postgres::Error;

/// The maximum number of dimensions of an index.
const MOST_DIMENSIONS: usize = 2_000;

/// The first half of the key of the advisory lock of those who create an index in one schema.
const LOCK: i32 = 0x6164_7669;

const CREATE: &str = "CREATE INDEX IF NOT EXISTS documents_embedding ON {schema}.documents \
    USING hnsw (embedding {vector}.vector_cosine_ops)";

// Without statistics the server takes small tenants for large ones, and reads the index in vain for them.
const ANALYZE: &str = "ANALYZE {schema}.documents";

impl PostgresVectors {
    /// The number of candidates that a search takes from an index at first, unless another one is set.
    pub const CANDIDATES: u16 = 40;

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
    /// [`SetupError::TooManyForIndex`] for more than 2,000 dimensions, and [`SetupError::Store`] for errors of the
    /// server.
    pub async fn create_index(&self) -> Result<(), SetupError> {
        if self.dimensions > MOST_DIMENSIONS {
            return Err(SetupError::TooManyForIndex { found: self.dimensions });
        }
        let client = client(&self.pool, self.timeout).await?;
        let mut client = guard(client, |client| drop(Client::take(client)));
        self.create_in(&mut client).await.map_err(from_statement)?;
        drop(ScopeGuard::into_inner(client));
        Ok(())
    }

    async fn create_in(&self, client: &mut Client) -> Result<(), Error> {
        let transaction = client.transaction().await?;
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
        // Of several that find no index, one creates it, and the others wait and find it.
        let schema = self.names.schema.as_str();
        transaction.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", &[&LOCK, &schema]).await?;
        transaction.batch_execute(&self.names.in_sql(CREATE)).await?;
        transaction.batch_execute(&self.names.in_sql(ANALYZE)).await?;
        transaction.commit().await
    }

    /// Sets the number of candidates that a search takes from an index at first, from 1 to 1,000. More candidates make
    /// it slower, and it misses fewer documents.
    ///
    /// It takes further ones until enough documents pass the filter, but not more than `hnsw.max_scan_tuples` of the
    /// server.
    #[must_use]
    pub fn with_candidates(self, number: u16) -> Self {
        Self { candidates: number.clamp(1, 1_000), ..self }
    }
}
