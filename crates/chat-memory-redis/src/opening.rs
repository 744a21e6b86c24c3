//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{Client, ProtocolVersion};

use crate::failure::{lasting, of_reading};
use crate::link::{GivenLink, Link, OwnLink};
use crate::replies::number;
use crate::scripts::Scripts;
use crate::{Prefix, RedisStore, SetupError};

/// The time that a connection and an answer may take each, unless the caller says otherwise.
const TIME: Duration = Duration::from_secs(30);

/// The bytes of a batch, unless the caller says otherwise.
const LARGEST_BATCH: usize = 64 << 20;

/// The server ends a connection that sends a value of more than 512 MiB or a command of more than 1 GiB; this
/// stays well below.
const LARGEST_BATCH_EVER: usize = 256 << 20;

impl RedisStore {
    /// Connects to the server at this address, such as `redis://user:password@host:6379/0`, with the
    /// [prefix](Prefix) `advisor`.
    ///
    /// With the feature `native-tls`, `rediss://` speaks TLS.
    ///
    /// # Errors
    /// [`SetupError`]; what it says never holds the address.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        // What the parser says may quote the address, so it is not passed on.
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

    /// Makes one connection with this client, and makes it again when it is lost. It speaks RESP3, by which
    /// it learns at once of a connection that was closed.
    ///
    /// The client decides how a connection is made: its address, TLS, user and password.
    ///
    /// # Errors
    /// [`SetupError::Store`], if the server cannot be reached or does not let the user run scripts.
    pub async fn from_client(client: Client, prefix: Prefix) -> Result<Self, SetupError> {
        let info = client.get_connection_info();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client =
            Client::open(info.clone().set_redis_settings(settings)).map_err(|_| SetupError::Address)?;
        Self::over(OwnLink::new(client), prefix).await
    }

    /// Uses a connection of the caller's: one to a cluster (feature `cluster`), or one that is made in some
    /// other way. Clones of it must be one connection to one server or cluster that writes.
    ///
    /// How it connects anew is its own affair. Since it may repeat what it sends, more of its errors leave the
    /// outcome of an append open. Its own time-out is best longer than the [store's](Self::with_timeout): that of
    /// the driver's `ConnectionManager` is half a second, unless it is told otherwise.
    ///
    /// # Errors
    /// [`SetupError::Store`], if the server cannot be reached or does not let the user run scripts.
    pub async fn from_connection<C>(connection: C, prefix: Prefix) -> Result<Self, SetupError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Self::over(GivenLink(connection), prefix).await
    }

    /// The time that getting a connection and getting an answer may take each; 30 seconds, if not said.
    #[must_use]
    pub fn with_timeout(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The most bytes that the entries of a batch may have together as JSON; 64 MiB, if not said, and
    /// never more than 256 MiB. Beyond it an append is
    /// [`StoreError::TooLarge`](conversation_store::StoreError::TooLarge).
    #[must_use]
    pub fn with_largest_batch(self, bytes: usize) -> Self {
        Self { largest_batch: bytes.min(LARGEST_BATCH_EVER), ..self }
    }

    async fn over(link: impl Link, prefix: Prefix) -> Result<Self, SetupError> {
        let scripts = Arc::new(Scripts::new());
        let store = Self { link: Arc::new(link), prefix, scripts, time: TIME, largest_batch: LARGEST_BATCH };
        // It only shows that scripts can be run.
        let probe = store.scripts.exists.key(store.prefix.probe());
        let absent = store.run(&probe).await.and_then(|absent| number(&absent)).map_err(of_reading)?;
        if absent == 0 {
            Ok(store)
        } else {
            Err(lasting("a key of the prefix is used by something else").into())
        }
    }
}
