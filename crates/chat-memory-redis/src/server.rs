//! The server as the store uses it: its connection, its scripts and the names of its keys.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::ConversationKey;
use conversation_store::Result;
use redis::aio::ConnectionLike;
use redis::{Client, ProtocolVersion, ScriptInvocation, Value};

use crate::failure::{from_reading, lasting};
use crate::link::{GivenLink, Link, OwnLink};
use crate::replies::number;
use crate::scripts::Scripts;
use crate::{Prefix, SetupError};

/// The default timeout of getting a connection and of getting an answer, each.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server or a cluster, the connection to it and the prefix of its keys. Clones share the connection.
///
/// A [`RedisStore`](crate::RedisStore) uses it. Others may, for further keys of conversations.
#[derive(Clone)]
pub struct RedisServer {
    link: Arc<dyn Link>,
    pub(crate) prefix: Prefix,
    pub(crate) scripts: Arc<Scripts>,
    /// The timeout of getting a connection and of getting an answer, each.
    timeout: Duration,
}

impl RedisServer {
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
    /// The connection handles its own reconnects. Set its own timeout longer than that of [this
    /// server](Self::with_timeout); the default of the driver's `ConnectionManager` is half a second.
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
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the name of a further key of a conversation. It is in the same slot of a cluster as the others.
    ///
    /// Keys of a store have single words as their `part`.
    #[must_use]
    pub fn conversation_key(&self, conversation: &ConversationKey, part: &str) -> String {
        self.prefix.key(conversation, part)
    }

    /// Runs a script within the timeout.
    ///
    /// # Errors
    /// As those of [`RedisStore`](crate::RedisStore). No error has keys, values or an address.
    pub async fn run(&self, script: &ScriptInvocation<'_>) -> Result<Value> {
        self.link.run(script, self.timeout).await
    }

    async fn over(link: impl Link, prefix: Prefix) -> Result<Self, SetupError> {
        let scripts = Arc::new(Scripts::new());
        let server = Self { link: Arc::new(link), prefix, scripts, timeout: TIMEOUT };
        // The probe only checks that scripts can be run.
        let probe = server.scripts.exists.key(server.prefix.probe());
        let absent = server.run(&probe).await.and_then(|absent| number(&absent)).map_err(from_reading)?;
        if absent == 0 {
            Ok(server)
        } else {
            Err(lasting("a key of the prefix is used by something else").into())
        }
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("prefix", &self.prefix.as_str()).finish_non_exhaustive()
    }
}
