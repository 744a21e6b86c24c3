//! The connection to the server: one that is reopened when it is lost, or one that the caller provides.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use advisor_core::async_trait;
use conversation_store::{Result, StoreError};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, PushInfo, PushKind, RedisError, RedisResult, ScriptInvocation, Value,
};
use scopeguard::{ScopeGuard, guard};
use tokio::sync::Mutex;
use tokio::time::{self, Instant};

use crate::failure::{before_sending, ends_connection, from_repeated_script, from_script};

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
