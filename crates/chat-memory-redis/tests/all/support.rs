//! What the tests share.

use std::io::Write as _;
use std::sync::Once;

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};
use chat_memory_advisor::{Batch, BatchKey, EntryKind, NewEntry};
use chat_memory_redis::redis::aio::MultiplexedConnection;
use chat_memory_redis::redis::{Client, FromRedisValue, cmd};
use chat_memory_redis::{Prefix, RedisStore};

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
    pub(crate) prefix: Prefix,
}

impl Place {
    /// A place on the server, or nothing where there is none.
    pub(crate) fn new() -> Option<Self> {
        server().map(Self::at)
    }

    pub(crate) fn at(url: String) -> Self {
        Self { url, prefix: Prefix::new(&format!("test:{}", String::from(TurnId::mint()))).unwrap() }
    }

    pub(crate) async fn store(&self) -> RedisStore {
        self.store_at(&self.url).await
    }

    pub(crate) async fn store_at(&self, url: &str) -> RedisStore {
        RedisStore::from_client(Client::open(url).unwrap(), self.prefix.clone()).await.unwrap()
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        Client::open(self.url.as_str()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    /// Runs a command around the store. `@` stands for the keys of conversation `c`, without their last part.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &str) -> T {
        let command = command.replace('@', &format!("{}:{{default/c}}:", self.prefix));
        let mut words = command.split(' ');
        let mut command = cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.connection().await).await.unwrap()
    }

    /// Writes the log of conversation `c` anew, with these bodies in the place of those of each number.
    pub(crate) async fn rewrite(&self, body: impl Fn(u64, &str) -> String) {
        let log: Vec<(String, Vec<String>)> = self.run("XRANGE @log - +").await;
        self.run::<i64>("DEL @log").await;
        for (id, fields) in log {
            let seq = id.split('-').next().unwrap().parse().unwrap();
            let key = format!("{}:{{default/c}}:log", self.prefix);
            let mut add = cmd("XADD");
            add.arg(key).arg(id).arg("turn").arg(&fields[1]).arg("body").arg(body(seq, &fields[3]));
            add.exec_async(&mut self.connection().await).await.unwrap();
        }
    }

    /// What these parts of conversation `c` hold, as the server writes it down.
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

/// What a user said, each text an entry.
pub(crate) fn said(turn: &str, round: u32, texts: &[&str]) -> Batch {
    let kinds = texts.iter().map(|text| EntryKind::Message(Message::user(*text)));
    batch(turn, round, kinds)
}

/// The end of a turn.
pub(crate) fn ended(turn: &str, round: u32) -> Batch {
    batch(turn, round, [EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))])
}

pub(crate) fn batch(turn: &str, round: u32, kinds: impl IntoIterator<Item = EntryKind>) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let entries = kinds.into_iter().map(|kind| NewEntry::new(turn.clone(), kind)).collect();
    Batch::new(BatchKey::new(turn, round, "step"), entries)
}
