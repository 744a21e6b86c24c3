//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use conversation_store::StoreError;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};

use crate::failure::{lasting, of_pool};
use crate::migrations::migrate;
use crate::statements::Statements;
use crate::{PostgresStore, Schema, SetupError};

/// The connections of a pool that `connect` makes.
const CONNECTIONS: usize = 16;

/// The time that a connection and an answer may take each, unless the caller says otherwise.
const TIME: Duration = Duration::from_secs(30);

/// The bytes of a batch, unless the caller says otherwise.
const LARGEST_BATCH: usize = 64 << 20;

/// The protocol's messages and the server's values end at 1 GiB; this stays well below.
const LARGEST_BATCH_EVER: usize = 512 << 20;

impl PostgresStore {
    /// Connects to the database at this address, such as `postgres://user:password@host:5432/database`,
    /// and prepares the schema `advisor_chain` in it.
    ///
    /// Up to 16 connections, without TLS. For TLS, another schema or another number of connections, make a
    /// pool and pass it to [`PostgresStore::from_pool`].
    ///
    /// # Errors
    /// [`SetupError`]; what it says never holds the password.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        // What the parser says may quote the address, so it is not passed on.
        let mut config: Config = address.parse().map_err(|_| SetupError::Address)?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(SetupError::NeedsTls);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(TIME);
        }
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, fast))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(lasting)?;
        Self::from_pool(pool, Schema::default()).await
    }

    /// Takes connections from the caller's pool, and prepares the schema in their database.
    ///
    /// The pool decides how connections are made: their number, TLS, time-outs, `statement_timeout`. A role
    /// that may not create schemas can use one that was prepared by another role. Connections to one server
    /// that writes: behind a balancer of reads a store would not see what it wrote.
    ///
    /// # Errors
    /// [`SetupError::Newer`], if a newer version of this crate prepared the schema; [`SetupError::Store`], if the
    /// server cannot be reached, or did not answer within 30 seconds.
    pub async fn from_pool(pool: Pool, schema: Schema) -> Result<Self, SetupError> {
        // The server may accept the connection and say nothing, or another one may hold the lock of the migrations.
        let prepared = async {
            let mut client = pool.get().await.map_err(of_pool)?;
            migrate(&mut client, &schema).await
        };
        timeout(TIME, prepared)
            .await
            .map_err(|_| StoreError::unavailable("the server did not answer in time"))??;
        let statements = Arc::new(Statements::of(&schema));
        Ok(Self { pool, schema, statements, time: TIME, largest_batch: LARGEST_BATCH })
    }

    /// The time that getting a connection and getting an answer may take each; 30 seconds, if not said.
    #[must_use]
    pub fn with_timeout(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The most bytes that the entries of a batch may have together as JSON; 64 MiB, if not said, and
    /// never more than 512 MiB. Beyond it an append is
    /// [`StoreError::TooLarge`](conversation_store::StoreError::TooLarge).
    #[must_use]
    pub fn with_largest_batch(self, bytes: usize) -> Self {
        Self { largest_batch: bytes.min(LARGEST_BATCH_EVER), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test(start_paused = true)]
    async fn d18_a_server_that_says_nothing_is_not_waited_for() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        // Its own clock bounds the connecting alone.
        let address = format!("postgres://a:canary@127.0.0.1:{port}/b?connect_timeout=3600");
        let opened = timeout(Duration::from_secs(600), PostgresStore::connect(&address)).await;
        let error = opened.expect("a bound").expect_err("no server");
        assert!(
            matches!(&error, SetupError::Store(_)) && !format!("{error:?}").contains("canary"),
            "{error:?}"
        );
    }
}
