//! The server as the store uses it: its connection and the names of its keys.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use advisor_core::{ConversationKey, async_trait};
use conversation_store::{Result, StoreError};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, ProtocolVersion, PushInfo, PushKind, RedisError,
    RedisResult, ScriptInvocation, Value,
};
use scopeguard::{ScopeGuard, guard};
use tokio::sync::Mutex;
use tokio::time::{self, Instant};

use crate::failure::{
    SetupError, before_sending, ends_connection, from_reading, from_repeated_script, from_script, lasting,
};
use crate::prefix::Prefix;
use crate::replies::read;
use crate::scripts::EXISTS;

/// The default timeout of getting a connection and of getting an answer, each.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server or a cluster, the connection to it and the prefix of its keys. Clones share the connection.
///
/// A [`RedisStore`](crate::RedisStore) uses it. Others may, for further keys of conversations.
#[derive(Clone)]
pub struct RedisServer {
    link: Arc<dyn Link>,
    pub(crate) prefix: Prefix,
    /// The timeout of getting a connection and of getting an answer, each.
    timeout: Duration,
}

impl RedisServer {
    /// Connects to the server at this address, such as `redis://user:password@host:6379/0`. Its keys have the prefix
    /// `advisor`.
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
        Self::from_client(client, "advisor").await
    }

    /// Opens one connection with this client and reopens it when it is lost. It uses RESP3, through which it
    /// learns of a closed connection at once.
    ///
    /// The client decides how a connection is made: its address, TLS, user and password. All keys begin with the
    /// prefix: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `-`, `_`, `.` and `:`. Stores with different prefixes on one
    /// server share nothing.
    ///
    /// # Errors
    /// [`SetupError::Prefix`] for another prefix, such as one with braces, which would move conversations to other
    /// slots of a cluster. [`SetupError::Store`] if the server cannot be reached or does not let the user run scripts.
    pub async fn from_client(client: Client, prefix: &str) -> Result<Self, SetupError> {
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
    pub async fn from_connection<C>(connection: C, prefix: &str) -> Result<Self, SetupError>
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

    /// Runs a script whose writes, if any, need not be known.
    pub(crate) async fn ask<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T> {
        self.run(script).await.and_then(read).map_err(from_reading)
    }

    async fn over(link: impl Link, prefix: &str) -> Result<Self, SetupError> {
        let server = Self { link: Arc::new(link), prefix: Prefix::new(prefix)?, timeout: TIMEOUT };
        // The probe only checks that scripts can be run.
        let probe = EXISTS.key(server.prefix.probe());
        if server.ask(&probe).await? {
            return Err(lasting("a key of the prefix is used by something else").into());
        }
        Ok(server)
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("prefix", &self.prefix.as_str()).finish_non_exhaustive()
    }
}

/// The divisor of the timeout after which a dropped call marks the connection as lost. Callers may have shorter
/// timeouts than the store, and would otherwise keep reusing a connection that answers nothing.
const PATIENCE: u32 = 10;

#[async_trait]
pub(crate) trait Link: Send + Sync + 'static {
    /// Runs a script. Getting a connection and getting an answer may each take up to `timeout`.
    async fn run(&self, script: &ScriptInvocation<'_>, timeout: Duration) -> Result<Value>;
}

/// One connection at a time, shared by all clones of a store, with concurrent requests.
///
/// Not the driver's `ConnectionManager`: it does not tell a request that was sent from one that was not.
pub(crate) struct OwnLink {
    client: Client,
    live: Mutex<Option<Live>>,
}

/// A connection, and whether it is known to be unusable.
#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    lost: Arc<AtomicBool>,
}

/// The caller's connection, which handles its own reconnects.
pub(crate) struct GivenLink<C>(pub(crate) C);

impl OwnLink {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, live: Mutex::new(None) }
    }

    /// Returns the connection. The first caller without one opens it, while the others wait.
    async fn live(&self) -> RedisResult<Live> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref().filter(|live| !live.lost.load(Ordering::Acquire)) {
            return Ok(live.clone());
        }
        let made = Live::make(&self.client).await?;
        Ok(live.insert(made).clone())
    }
}

impl Live {
    async fn make(client: &Client) -> RedisResult<Self> {
        let lost = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&lost);
        let notice = move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                noticed.store(true, Ordering::Release);
            }
            Ok::<_, RedisError>(())
        };
        // The store applies its own timeout.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(notice);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Self { connection, lost })
    }
}

#[async_trait]
impl Link for OwnLink {
    async fn run(&self, script: &ScriptInvocation<'_>, timeout: Duration) -> Result<Value> {
        let live = time::timeout(timeout, self.live()).await;
        let live = live.map_err(|_| StoreError::unavailable("no connection was made in time"))?;
        let mut live = live.map_err(|error| before_sending(&error))?;
        let (asked, patience) = (Instant::now(), timeout / PATIENCE);
        let unanswered = guard(&live.lost, |lost| {
            if asked.elapsed() > patience {
                lost.store(true, Ordering::Release);
            }
        });
        let answer = answer(&mut live.connection, script, timeout).await;
        let lost = ScopeGuard::into_inner(unanswered);
        if answer.as_ref().is_err_and(ends_connection) {
            lost.store(true, Ordering::Release);
        }
        answer.map_err(|error| from_script(&error))
    }
}

#[async_trait]
impl<C: ConnectionLike + Clone + Send + Sync + 'static> Link for GivenLink<C> {
    async fn run(&self, script: &ScriptInvocation<'_>, timeout: Duration) -> Result<Value> {
        let mut connection = self.0.clone();
        answer(&mut connection, script, timeout).await.map_err(|error| from_repeated_script(&error))
    }
}

async fn answer(
    connection: &mut (impl ConnectionLike + Send),
    script: &ScriptInvocation<'_>,
    timeout: Duration,
) -> RedisResult<Value> {
    match time::timeout(timeout, script.invoke_async(connection)).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}
