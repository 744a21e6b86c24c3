//! Opening a store.

use std::time::Duration;

use redis::Client;
use redis::aio::ConnectionLike;

use crate::{Prefix, RedisServer, RedisStore, SetupError};

/// The default maximum size of a batch in bytes.
const LARGEST_BATCH: usize = 64 << 20;

/// The upper limit of that bound. The server closes a connection that sends a value over 512 MiB or a command over
/// 1 GiB; this stays well below.
const LARGEST_BATCH_EVER: usize = 256 << 20;

impl RedisStore {
    /// Connects to the server at this address, such as `redis://user:password@host:6379/0`, with the
    /// [prefix](Prefix) `advisor`.
    ///
    /// With the feature `native-tls`, `rediss://` uses TLS.
    ///
    /// # Errors
    /// [`SetupError`]; its text never contains the address.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        RedisServer::connect(address).await.map(Self::from_server)
    }

    /// Opens one connection with this client, as [`RedisServer::from_client`].
    ///
    /// # Errors
    /// [`SetupError::Store`] if the server cannot be reached or does not let the user run scripts.
    pub async fn from_client(client: Client, prefix: Prefix) -> Result<Self, SetupError> {
        RedisServer::from_client(client, prefix).await.map(Self::from_server)
    }

    /// Uses the caller's connection, as [`RedisServer::from_connection`].
    ///
    /// The connection handles its own reconnects. Since it may resend commands, more of its errors leave the
    /// outcome of an append unknown.
    ///
    /// # Errors
    /// [`SetupError::Store`] if the server cannot be reached or does not let the user run scripts.
    pub async fn from_connection<C>(connection: C, prefix: Prefix) -> Result<Self, SetupError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        RedisServer::from_connection(connection, prefix).await.map(Self::from_server)
    }

    /// Creates a store on this server, whose connection others may use as well.
    #[must_use]
    pub fn from_server(server: RedisServer) -> Self {
        Self { server, largest_batch: LARGEST_BATCH }
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 30 seconds.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { server: self.server.with_timeout(timeout), ..self }
    }

    /// Sets the maximum size of a batch in bytes: its entries as JSON and the ids of their turns. The default is
    /// 64 MiB, the maximum 256 MiB. A larger batch is
    /// [`StoreError::TooLarge`](conversation_store::StoreError::TooLarge).
    #[must_use]
    pub fn with_largest_batch(self, bytes: usize) -> Self {
        Self { largest_batch: bytes.min(LARGEST_BATCH_EVER), ..self }
    }
}
