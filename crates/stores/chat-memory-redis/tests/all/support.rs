//! Shared parts of the tests.

use std::io::Write as _;
use std::sync::Once;

pub(crate) use advisor_conformance::store::{ended, said};
use advisor_core::{ConversationKey, TurnId};
use chat_memory_redis::redis::aio::MultiplexedConnection;
use chat_memory_redis::redis::{AsyncConnectionConfig, Client, FromRedisValue, cmd};
use chat_memory_redis::{RedisServer, RedisStore};

/// The address of the server, or nothing where there is none.
pub(crate) fn server() -> Option<String> {
    static SAID: Once = Once::new();
    named("ADVISOR_REDIS_URL", "server", &SAID)
}

/// The address of a node that has all slots of a cluster, or nothing where there is none.
pub(crate) fn cluster() -> Option<String> {
    static SAID: Once = Once::new();
    named("ADVISOR_REDIS_CLUSTER_URL", "cluster", &SAID)
}

fn named(variable: &str, what: &str, said: &Once) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    if url.is_none() {
        assert!(!required, "ADVISOR_REQUIRE_SERVERS=1, but {variable} names no {what}");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let say = format!("left out: no Redis {what}; name one in {variable}");
        said.call_once(|| drop(writeln!(std::io::stderr(), "{say}")));
    }
    url
}

/// A prefix of one test alone.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl Place {
    /// A place on the server, or nothing where there is none.
    pub(crate) fn new() -> Option<Self> {
        server().map(Self::at)
    }

    pub(crate) fn at(url: String) -> Self {
        Self { url, prefix: format!("test:{}", String::from(TurnId::random())) }
    }

    pub(crate) async fn store(&self) -> RedisStore {
        self.store_at(&self.url).await
    }

    pub(crate) async fn store_at(&self, url: &str) -> RedisStore {
        RedisStore::from_server(self.server_at(url).await)
    }

    pub(crate) async fn server_at(&self, url: &str) -> RedisServer {
        RedisServer::from_client(Client::open(url).unwrap(), &self.prefix).await.unwrap()
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        // The driver's own time-out is half a second, which a busy machine may need.
        let patient = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let client = Client::open(self.url.as_str()).unwrap();
        client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
    }

    /// Runs a command outside the store. `@` stands for the keys of conversation `c`, without their last part.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &str) -> T {
        let command = command.replace('@', &format!("{}:{{default/c}}:", self.prefix));
        let mut words = command.split(' ');
        let mut command = cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.connection().await).await.unwrap()
    }

    /// Rewrites the log of a conversation with other fields for each number, or without the entry.
    pub(crate) async fn rewrite_log(
        &self,
        conversation: &str,
        fields: impl Fn(u64, Vec<String>) -> Option<Vec<String>> + Send,
    ) {
        let key = format!("{}:{{default/{conversation}}}:log", self.prefix);
        let mut connection = self.connection().await;
        let log: Vec<(String, Vec<String>)> =
            cmd("XRANGE").arg(&key).arg("-").arg("+").query_async(&mut connection).await.unwrap();
        cmd("DEL").arg(&key).exec_async(&mut connection).await.unwrap();
        // A log whose last entry is removed is still there, empty: the server keeps a stream until it is deleted.
        cmd("XADD").arg(&key).arg("0-1").arg("any").arg("").exec_async(&mut connection).await.unwrap();
        for (id, before) in log {
            let seq = id.split('-').next().unwrap().parse().unwrap();
            if let Some(after) = fields(seq, before) {
                cmd("XADD").arg(&key).arg(id).arg(after).exec_async(&mut connection).await.unwrap();
            }
        }
        cmd("XDEL").arg(&key).arg("0-1").exec_async(&mut connection).await.unwrap();
    }

    /// Puts this in the place of the first fork of conversation `c`.
    pub(crate) async fn set_fork(&self, fork: &str) {
        let key = format!("{}:{{default/c}}:forks", self.prefix);
        cmd("LSET").arg(key).arg(0).arg(fork).exec_async(&mut self.connection().await).await.unwrap();
    }

    /// Returns these parts of conversation `c` in the server's serialised form.
    pub(crate) async fn dumps(&self, parts: &[&str]) -> Vec<Option<Vec<u8>>> {
        let mut dumps = Vec::new();
        for part in parts {
            dumps.push(self.run(&format!("DUMP @{part}")).await);
        }
        dumps
    }

    /// The keys of the prefix.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.run(&format!("KEYS {}:*", self.prefix)).await;
        keys.sort_unstable();
        keys
    }

    pub(crate) async fn remove(self) {
        for key in self.keys().await {
            self.run::<i64>(&format!("DEL {key}")).await;
        }
    }
}

pub(crate) fn key(conversation: &str) -> ConversationKey {
    ConversationKey::new(conversation).unwrap()
}
