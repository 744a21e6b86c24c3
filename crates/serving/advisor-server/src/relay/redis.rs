//! `RedisRelay`: a stream per turn, and keys that expire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, Text, TurnId, async_trait};
use chat_memory_redis::redis::{FromRedisValue, Script, ScriptInvocation, from_redis_value};
use chat_memory_redis::{RedisServer, SetupError};

use crate::relay::{Appended, Begun, RelayError, RunBatch, RunEnd, RunPage, RunState, TurnRelay, TurnRun};

/// The items and bytes of a page, at most. One item may be larger.
const PAGE_ITEMS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// The default timeout of getting a connection and of getting an answer, each.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A relay in Redis or Valkey, for the processes of a service. Clones share the connection.
///
/// The items of a turn are a stream. All keys of a conversation are in one slot of a cluster. Keys expire by
/// themselves, so no deletion is lost with a process.
///
/// A user with an access list needs the keys of the prefix, and these commands: `eval`, `evalsha`, `script|load`, `time`,
/// `exists`, `get`, `set`, `unlink`, `pexpire`, `hget`, `hmget`, `hset`, `xadd`, `xrange`, `xrevrange`, `zadd`, `zrange`,
/// `zremrangebyscore`.
///
/// # Errors
/// If the server does not answer in time, or refuses a script. No error has keys, values or an address.
///
/// # Example
/// ```no_run
/// use advisor_core::ChatClient;
/// use advisor_server::{ChatServer, RedisRelay};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::ChatMemoryAdvisor;
/// use chat_memory_redis::{RedisServer, RedisStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // One connection for memory and for the relay. Memory may also be elsewhere, such as in PostgreSQL.
/// let redis = RedisServer::connect("redis://app:secret@127.0.0.1:6379/0").await?;
/// let memory = ChatMemoryAdvisor::new(RedisStore::from_server(redis.clone()));
/// let model = ScriptedModel::new([Answer::from_text("It is noon.")]);
/// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
/// let server = ChatServer::new(client, memory).with_relay(RedisRelay::from_server(redis));
/// # let _ = server;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedisRelay {
    server: RedisServer,
    scripts: Arc<Scripts>,
}

impl RedisRelay {
    /// Connects to the server at this address, such as `redis://user:password@host:6379/0`, with the prefix `advisor`.
    ///
    /// # Errors
    /// [`SetupError`]; its text never contains the address.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        RedisServer::connect(address).await.map(Self::from_server)
    }

    /// Creates a relay on this server: one with another prefix, of a cluster, or one that a store uses, too.
    ///
    /// The relay's [timeout](Self::with_timeout) replaces that of the server.
    #[must_use]
    pub fn from_server(server: RedisServer) -> Self {
        Self { server: server.with_timeout(TIMEOUT), scripts: Arc::new(Scripts::new()) }
    }

    /// Sets the timeout of getting a connection and of getting an answer, each. The default is 2 seconds.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { server: self.server.with_timeout(timeout), ..self }
    }

    fn key(&self, conversation: &ConversationKey, part: &str) -> String {
        self.server.conversation_key(conversation, &format!("relay:{part}"))
    }

    /// Returns the keys of a turn alone. Ids of turns have no `:`.
    fn turn_keys(&self, conversation: &ConversationKey, turn: &TurnId) -> [String; 2] {
        ["state", "items"].map(|part| self.key(conversation, &format!("{turn}:{part}")))
    }

    /// Returns the keys of a turn and those of its conversation, in the order that the scripts expect.
    fn run_keys(&self, run: &TurnRun) -> Vec<String> {
        let mut keys = Vec::from(self.turn_keys(&run.conversation, &run.turn));
        keys.extend(["begun", "owned", "turns"].map(|part| self.key(&run.conversation, part)));
        keys
    }

    async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, RelayError> {
        let answer = self.server.run(script).await.map_err(RelayError::new)?;
        from_redis_value(answer).map_err(|_| RelayError::new("the server's answer cannot be read"))
    }
}

#[async_trait]
impl TurnRelay for RedisRelay {
    async fn begin(&self, run: &TurnRun) -> Result<Begun, RelayError> {
        let mut script = self.scripts.begin.key(self.run_keys(run));
        script.arg(run.turn.as_str()).arg(run.id.as_str());
        script.arg(millis(TurnRun::OWNER_TTL)).arg(millis(TurnRun::KEPT_TTL)).arg(run.input.as_str());
        let elsewhere: Option<String> = self.run(&script).await?;
        Ok(elsewhere.map_or(Begun::Owned, |input| Begun::Elsewhere { input: input.into() }))
    }

    async fn release(&self, run: &TurnRun) -> Result<(), RelayError> {
        let mut script = self.scripts.release.key(self.run_keys(run));
        self.run(script.arg(run.turn.as_str()).arg(run.id.as_str())).await
    }

    async fn append(&self, run: &TurnRun, batch: &RunBatch) -> Result<Appended, RelayError> {
        let mut script = self.scripts.append.key(self.run_keys(run));
        script.arg(run.turn.as_str()).arg(run.id.as_str());
        script.arg(millis(TurnRun::OWNER_TTL)).arg(millis(TurnRun::KEPT_TTL));
        // The server takes no larger number.
        let kept = i64::try_from(run.kept_items).unwrap_or(i64::MAX);
        let end = match batch.end {
            None => "",
            Some(RunEnd::Final) => "final",
            Some(RunEnd::Void) => "void",
        };
        script.arg(kept).arg(end).arg(batch.first).arg(&batch.items);
        match self.run::<String>(&script).await?.as_str() {
            "running" => Ok(Appended::Running),
            "stop" => Ok(Appended::StopRequested),
            _ => Ok(Appended::Lost),
        }
    }

    async fn read(
        &self,
        conversation: &ConversationKey,
        turn: &TurnId,
        from: u64,
    ) -> Result<Option<RunPage>, RelayError> {
        let [state, items] = self.turn_keys(conversation, turn);
        let mut script = self.scripts.read.key(&[state, items, self.key(conversation, "owned")][..]);
        let page: Option<(String, String, Vec<(String, (String, String))>)> =
            self.run(script.arg(turn.as_str()).arg(from).arg(PAGE_ITEMS).arg(PAGE_BYTES)).await?;
        let Some((run, state, items)) = page else { return Ok(None) };
        let state = match state.as_str() {
            "running" => RunState::Running,
            "ended" => RunState::Ended,
            _ => RunState::Interrupted,
        };
        let number = |id: &str| id.split_once('-').and_then(|(number, _)| number.parse().ok());
        let items = items.into_iter().filter_map(|(id, (_, item))| Some((number(&id)?, item)));
        Ok(Some(RunPage::new(Text::from(run), items.collect(), state)))
    }

    async fn running(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, RelayError> {
        let keys = ["begun", "owned"].map(|part| self.key(conversation, part));
        let script = self.scripts.running.key(&keys[..]);
        let turns: Vec<String> = self.run(&script).await?;
        Ok(turns.iter().filter_map(|turn| TurnId::new(turn).ok()).collect())
    }

    async fn stop(&self, conversation: &ConversationKey, turn: &TurnId) -> Result<(), RelayError> {
        let script = self.scripts.stop.key(&self.turn_keys(conversation, turn)[..]);
        self.run(&script).await
    }

    async fn forget(&self, conversation: &ConversationKey) -> Result<(), RelayError> {
        let mut keys = Vec::from(["begun", "owned", "turns"].map(|part| self.key(conversation, part)));
        let turns: Vec<String> = self.run(&self.scripts.turns.key(self.key(conversation, "turns"))).await?;
        for turn in turns.iter().filter_map(|id| TurnId::new(id).ok()) {
            keys.extend(self.turn_keys(conversation, &turn));
        }
        // A turn that has begun meanwhile stays.
        self.run(self.scripts.forget.key(keys).arg(turns)).await
    }
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for RedisRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRelay").field("server", &self.server).finish_non_exhaustive()
    }
}

pub(super) struct Scripts {
    pub(super) begin: Script,
    pub(super) release: Script,
    pub(super) append: Script,
    pub(super) read: Script,
    pub(super) running: Script,
    pub(super) stop: Script,
    pub(super) turns: Script,
    pub(super) forget: Script,
}

const CLOCK: &str = include_str!("scripts/clock.lua");
const RENEW: &str = include_str!("scripts/renew.lua");

impl Scripts {
    pub(super) fn new() -> Self {
        let timed = |script: &str| Script::new(&[CLOCK, script].concat());
        let renewing = |script: &str| timed(&[RENEW, script].concat());
        Self {
            begin: renewing(include_str!("scripts/begin.lua")),
            release: Script::new(include_str!("scripts/release.lua")),
            append: renewing(include_str!("scripts/append.lua")),
            read: timed(include_str!("scripts/read.lua")),
            running: timed(include_str!("scripts/running.lua")),
            stop: Script::new(include_str!("scripts/stop.lua")),
            turns: Script::new("return redis.call('ZRANGE', KEYS[1], 0, -1)"),
            forget: Script::new(include_str!("scripts/forget.lua")),
        }
    }
}
