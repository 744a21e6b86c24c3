//! Opening a store.

use std::sync::Arc;
use std::time::Duration;

use common_advisors::retrieval::VectorError;
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use scopeguard::{ScopeGuard, guard};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};

use crate::failure::from_pool;
use crate::migrations::migrate;
use crate::{PostgresVectors, Schema, SetupError};

/// The maximum size of the pool that `connect` creates.
const CONNECTIONS: usize = 16;

/// The default timeout of getting a connection and of getting an answer, each.
const TIMEOUT: Duration = Duration::from_secs(30);

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
        // The parser's error may quote the address, so it is dropped.
        let mut config: Config = address.parse().map_err(|_| SetupError::Address)?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(SetupError::NeedsTls);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(TIMEOUT);
        }
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, fast))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(VectorError::unavailable)?;
        Self::from_pool(pool, Schema::default(), dimensions).await
    }

    /// Takes connections from the caller's pool, and prepares the schema in their database.
    ///
    /// The extension `vector` is created if it is missing and the role may create it. The pool decides how connections
    /// are made: their number, TLS, timeouts. A role with only read and write access to the table can use a schema that
    /// another role prepared. All connections must lead to one server that accepts writes. A pooler in between may be in
    /// transaction mode.
    ///
    /// # Errors
    /// [`SetupError::NoExtension`] and [`SetupError::OldExtension`] if the database does not have pgvector from 0.8 on.
    /// [`SetupError::Dimensions`] if the schema has documents of other dimensions. [`SetupError::Newer`] if a newer
    /// version of this crate prepared the schema. [`SetupError::Store`] if the server cannot be reached or does not
    /// answer within 30 seconds.
    ///
    /// # Example
    /// ```no_run
    /// use retrieval_postgres::deadpool_postgres::tokio_postgres::NoTls;
    /// use retrieval_postgres::deadpool_postgres::{Manager, Pool};
    /// use retrieval_postgres::{PostgresVectors, Schema};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A TLS connector in the place of `NoTls`.
    /// let manager = Manager::new("host=db.example user=app dbname=app".parse()?, NoTls);
    /// let pool = Pool::builder(manager).max_size(4).build()?;
    /// let manuals = PostgresVectors::from_pool(pool, Schema::new("manuals")?, 1_536).await?;
    /// println!("{manuals:?}");
    /// # Ok(()) }
    /// ```
    pub async fn from_pool(pool: Pool, schema: Schema, dimensions: usize) -> Result<Self, SetupError> {
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(SetupError::Unstorable { found: dimensions });
        }
        // The server may accept the connection and stay silent, or another client may hold the lock of the
        // migrations.
        let prepared = async {
            let client = pool.get().await.map_err(from_pool)?;
            // A connection that waits for the lock cannot be reused.
            let mut client = guard(client, |client| drop(Client::take(client)));
            let names = migrate(&mut client, schema, dimensions).await?;
            drop(ScopeGuard::into_inner(client));
            Ok::<_, SetupError>(names)
        };
        let names = timeout(TIMEOUT, prepared)
            .await
            .map_err(|_| VectorError::unavailable("the server did not answer in time"))??;
        let names = Arc::new(names);
        Ok(Self { pool, names, dimensions, timeout: TIMEOUT, candidates: Self::CANDIDATES })
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 30 seconds. The server
    /// ends a statement after this time, too.
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
        let opened = timeout(Duration::from_secs(600), PostgresVectors::connect(&address, 3)).await;
        let error = opened.expect("a bound").expect_err("no server");
        assert!(
            matches!(&error, SetupError::Store(_)) && !format!("{error:?}").contains("canary"),
            "{error:?}"
        );
    }
}
