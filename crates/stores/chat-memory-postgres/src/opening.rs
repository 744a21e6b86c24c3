//! Opening a store: its pool, and the migrations of its schema.

use std::time::Duration;

use advisor_postgres::{Preparation, Schema, ServerError, SetupError, TIMEOUT, pool};
use deadpool_postgres::Pool;
use tokio::time::timeout;

use crate::PostgresStore;

/// The n-th migration leads to version n. A released migration never changes; a new one follows it.
const MIGRATIONS: &[&str] = &[concat!(
    include_str!("migrations/1/tables.sql"),
    include_str!("migrations/1/leases.sql"),
    include_str!("migrations/1/loads.sql"),
    include_str!("migrations/1/appends.sql"),
)];

impl PostgresStore {
    /// Connects to the database at this address, such as `postgres://user:password@host:5432/database`, and
    /// prepares the schema `advisor_memory` in it.
    ///
    /// It uses up to 16 connections, without TLS, and refuses an address with `sslmode=require`. For TLS, another
    /// schema or another number of connections, create a pool and pass it to [`PostgresStore::from_pool`].
    ///
    /// # Errors
    /// [`SetupError`]; its text never contains the password.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        Self::from_pool(pool(address)?, "advisor_memory").await
    }

    /// Takes connections from the caller's pool, and prepares the schema of this name in their database. Stores in
    /// different schemas of one database share nothing.
    ///
    /// The pool decides how connections are made: their number, TLS, timeouts, `statement_timeout`. A role with
    /// only read and write access to the tables can use a schema that another role prepared. All connections must lead to one server that accepts writes. Behind a balancer of read replicas a
    /// store would not see its own writes. A pooler in between must keep prepared statements: PgBouncer in session
    /// mode, or from 1.21 on with `max_prepared_statements`.
    ///
    /// # Cancellation
    /// A dropped future closes its connection. The schema is then prepared completely or not at all.
    ///
    /// # Errors
    /// [`SetupError::SchemaName`] unless the name has 1 to 63 characters of `a-z`, `0-9` and `_`, and begins neither with
    /// a digit nor with `pg_`, which the server reserves.
    /// [`SetupError::Newer`] if a newer version of this crate prepared the schema. [`SetupError::Occupied`] if it has other
    /// tables. [`SetupError::Server`] if the server cannot be reached or does not answer within 30 seconds.
    ///
    /// # Example
    /// ```no_run
    /// use chat_memory_postgres::deadpool_postgres::tokio_postgres::NoTls;
    /// use chat_memory_postgres::deadpool_postgres::{Manager, Pool};
    /// use chat_memory_postgres::PostgresStore;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A TLS connector in the place of `NoTls`.
    /// let manager = Manager::new("host=db.example user=app dbname=app".parse()?, NoTls);
    /// let pool = Pool::builder(manager).max_size(4).build()?;
    /// let store = PostgresStore::from_pool(pool, "support_chat").await?;
    /// println!("{store:?}");
    /// # Ok(()) }
    /// ```
    pub async fn from_pool(pool: Pool, schema: &str) -> Result<Self, SetupError> {
        let schema = Schema::new(schema)?;
        // The server may accept the connection and stay silent, or another client may hold the lock of the
        // migrations.
        let prepared = async {
            let preparation = Preparation::begin(&pool, &schema).await?;
            preparation.migrate("memory_migrations", MIGRATIONS).await?;
            preparation.commit().await
        };
        timeout(TIMEOUT, prepared).await.map_err(|_| ServerError::silent())??;
        Ok(Self { pool, schema, timeout: TIMEOUT })
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 30 seconds.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
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
        let opened = timeout(Duration::from_secs(600), PostgresStore::connect(&address)).await;
        let error = opened.expect("a bound").expect_err("no server");
        assert!(
            matches!(&error, SetupError::Server(_)) && !format!("{error:?}").contains("canary"),
            "{error:?}"
        );
    }
}
