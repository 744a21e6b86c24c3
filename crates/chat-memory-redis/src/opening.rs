//! Opening a store.

use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{Client, ProtocolVersion};

use crate::failure::{from_reading, lasting};
use crate::link::{GivenLink, Link, OwnLink};
use crate::replies::number;
use crate::server::Server;
use crate::{Prefix, RedisStore, SetupError};

/// The default timeout of getting a connection and of getting an answer, each.
const TIMEOUT: Duration = Duration::from_secs(30);

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
        // The parser's error may quote the address, so it is dropped.
        let client = Client::open(address).map_err(|_| {
            let asks_for_tls = address.starts_with("rediss:") || address.starts_with("valkeys:");
            if asks_for_tls && cfg!(not(feature = "native-tls")) {
                SetupError::NeedsTls
            } else {
                SetupError::Address
            }
        })?;
        Self::from_client(client, Prefix::default()).await
    }

    /// Opens one connection with this client and reopens it when it is lost. It uses RESP3, through which it
    /// learns of a closed connection at once.
    ///
    /// The client decides how a connection is made: its address, TLS, user and password.
    ///
    /// # Errors
    /// [`SetupError::Store`] if the server cannot be reached or does not let the user run scripts.
    pub async fn from_client(client: Client, prefix: Prefix) -> Result<Self, SetupError> {
        let info = client.get_connection_info();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client =
            Client::open(info.clone().set_redis_settings(settings)).map_err(|_| SetupError::Address)?;
        Self::over(OwnLink::new(client), prefix).await
    }

    /// Uses the caller's connection: one to a cluster (feature `cluster`), or one that is made in some other way.
    /// Its clones must share one connection to one server or cluster that accepts writes.
    ///
    /// The connection handles its own reconnects. Since it may resend commands, more of its errors leave the
    /// outcome of an append unknown. Set its own timeout longer than the [store's](Self::with_timeout); the
    /// default of the driver's `ConnectionManager` is half a second.
    ///
    /// # Errors
    /// [`SetupError::Store`] if the server cannot be reached or does not let the user run scripts.
    pub async fn from_connection<C>(connection: C, prefix: Prefix) -> Result<Self, SetupError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Self::over(GivenLink(connection), prefix).await
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 30 seconds.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.server.timeout = timeout;
        self
    }

    /// Sets the maximum size of a batch in bytes: its entries as JSON and the ids of their turns. The default is
    /// 64 MiB, the maximum 256 MiB. A larger batch is
    /// [`StoreError::TooLarge`](conversation_store::StoreError::TooLarge).
    #[must_use]
    pub fn with_largest_batch(self, bytes: usize) -> Self {
        Self { largest_batch: bytes.min(LARGEST_BATCH_EVER), ..self }
    }

    async fn over(link: impl Link, prefix: Prefix) -> Result<Self, SetupError> {
        let server = Server::new(link, prefix, TIMEOUT);
        // The probe only checks that scripts can be run.
        let probe = server.scripts.exists.key(server.prefix.probe());
        let absent = server.run(&probe).await.and_then(|absent| number(&absent)).map_err(from_reading)?;
        if absent == 0 {
            Ok(Self { server, largest_batch: LARGEST_BATCH })
        } else {
            Err(lasting("a key of the prefix is used by something else").into())
        }
    }
}
