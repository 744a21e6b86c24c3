//! Measures an append in each store beside a bare insert of the same bytes, by the same driver in the same run.
//!
//! Both wait until the bytes are durable. They alternate, and alternate in going first, so that other work of
//! the machine affects both. The appends are those of a chat: a turn has two, with a fencing token if the store
//! grants leases. Run it with `cargo bench -p advisor-tests --bench append`; `ADVISOR_POSTGRES_URL` and
//! `ADVISOR_REDIS_URL` name the servers. Only the figures depend on the speed of the machine. `.ci/full`
//! compares the last figure of each row with its bound.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::time::{Duration, Instant};

use advisor_chain::memory::ConversationStore;
use advisor_chain::memory::store::{Batch, BatchKey, EntryKind, FencingToken, NewEntry, Version};
use advisor_chain::postgres::PostgresStore;
use advisor_chain::redis::RedisStore;
use advisor_chain::sqlite::SqliteStore;
use advisor_chain::{ConversationKey, InMemoryStore, Message, TurnId, async_trait};
use advisor_tests::stores::server;
use dashmap::DashMap;
use rusqlite::Connection;
use tokio_postgres::NoTls;

/// Appends that are timed, after half as many that are not.
const APPENDS: u32 = 1000;
/// Bytes of text in each.
const TEXT: usize = 2000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("{APPENDS} appends of one message of {TEXT} bytes, each beside a bare insert of as many bytes");
    println!("{:<12} {:>22} {:>22} {:>12}", "store", "append p50 / p99", "bare p50 / p99", "ratio of p50");
    print("in memory", InMemoryStore::new(), InMap::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).await.unwrap();
    print("SQLite", store, InFile::open(&folder.path().join("bare.db"))).await;
    if let Some(url) = server("ADVISOR_POSTGRES_URL") {
        print("PostgreSQL", PostgresStore::connect(&url).await.unwrap(), InTable::connect(&url).await).await;
    }
    if let Some(url) = server("ADVISOR_REDIS_URL") {
        print("Redis", RedisStore::connect(&url).await.unwrap(), InStream::connect(&url).await).await;
    }
}

/// The least that keeps some bytes in the same place.
#[async_trait]
trait Bare {
    async fn insert(&mut self, number: i64, bytes: &str);
}

async fn print(name: &str, store: impl ConversationStore, mut bare: impl Bare) {
    let mut log = Log::begin(store).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..APPENDS + APPENDS / 2 {
        let ours_first = number % 2 == number / 2 % 2;
        for is_ours in [ours_first, !ours_first] {
            if is_ours {
                ours.push(log.append(number).await)
            } else {
                theirs.push(insert(&mut bare, number).await)
            }
        }
    }
    log.store.delete(&log.key).await.unwrap();
    let [ours, theirs] = [ours, theirs].map(|times| quantiles(times[times.len() / 3..].to_vec()));
    let both = |(p50, p99): (Duration, Duration)| format!("{} / {}", micros(p50), micros(p99));
    let ratio = ours.0.as_secs_f64() / theirs.0.as_secs_f64();
    println!("{name:<12} {:>22} {:>22} {ratio:>12.2}", both(ours), both(theirs));
}

/// A conversation that is written as memory writes one.
struct Log<S> {
    store: S,
    key: ConversationKey,
    version: Version,
    turn: TurnId,
    token: Option<FencingToken>,
    last_turn: Option<TurnId>,
}

impl<S: ConversationStore> Log<S> {
    async fn begin(store: S) -> Self {
        let key = ConversationKey::in_tenant("bench", TurnId::random().as_str()).unwrap();
        Self { store, key, version: Version::EMPTY, turn: TurnId::random(), token: None, last_turn: None }
    }

    async fn append(&mut self, number: u32) -> Duration {
        if number.is_multiple_of(2) {
            self.turn = TurnId::random();
            self.take_lease().await;
        }
        let entry = NewEntry::new(self.turn.clone(), said(number));
        let mut batch = Batch::new(BatchKey::new(self.turn.clone(), number % 2, "said"), vec![entry]);
        batch.token = self.token;
        batch.last_turn = self.last_turn.replace(self.turn.clone());
        let began = Instant::now();
        self.version = self.store.append(&self.key, self.version, batch).await.unwrap();
        began.elapsed()
    }

    async fn take_lease(&mut self) {
        let Some(leases) = self.store.leases() else { return };
        let hour = Duration::from_secs(3600);
        self.token = Some(leases.acquire(&self.key, &self.turn, hour, self.token, false).await.unwrap());
    }
}

async fn insert(bare: &mut impl Bare, number: u32) -> Duration {
    let bytes = serde_json::to_string(&said(number)).unwrap();
    let began = Instant::now();
    bare.insert(number.into(), &bytes).await;
    began.elapsed()
}

/// Returns a message of this many bytes of text, each with another text.
fn said(number: u32) -> EntryKind {
    let mut text = String::new();
    for next in number.. {
        if text.len() >= TEXT {
            break;
        }
        text += &format!("{next} ");
    }
    EntryKind::Message(Message::user(text))
}

fn quantiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// One value in a map of the kind that the store has.
#[derive(Default)]
struct InMap(DashMap<(ConversationKey, i64), String>);

#[async_trait]
impl Bare for InMap {
    async fn insert(&mut self, number: i64, bytes: &str) {
        self.0.insert((ConversationKey::new("bare").unwrap(), number), bytes.into());
    }
}

struct InFile(Option<Connection>);

impl InFile {
    fn open(path: &std::path::Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "synchronous", "full").unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        connection.execute_batch("CREATE TABLE bare (number INTEGER PRIMARY KEY, body TEXT)").unwrap();
        Self(Some(connection))
    }
}

#[async_trait]
impl Bare for InFile {
    async fn insert(&mut self, number: i64, bytes: &str) {
        // Nobody waits for a disk on an async thread.
        let (connection, bytes) = (self.0.take().unwrap(), String::from(bytes));
        let inserting = tokio::task::spawn_blocking(move || {
            let insert = connection.prepare_cached("INSERT INTO bare VALUES (?1, ?2)");
            insert.unwrap().execute((number, bytes)).unwrap();
            connection
        });
        self.0 = Some(inserting.await.unwrap());
    }
}

struct InTable {
    client: tokio_postgres::Client,
    insert: tokio_postgres::Statement,
}

impl InTable {
    async fn connect(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::task::spawn(connection);
        // Not a temporary one: that would not be durable.
        let make = "DROP TABLE IF EXISTS bare_insert; CREATE TABLE bare_insert (number bigint PRIMARY KEY, body text)";
        client.batch_execute(make).await.unwrap();
        let insert = client.prepare("INSERT INTO bare_insert VALUES ($1, $2)").await.unwrap();
        Self { client, insert }
    }
}

#[async_trait]
impl Bare for InTable {
    async fn insert(&mut self, number: i64, bytes: &str) {
        self.client.execute(&self.insert, &[&number, &bytes]).await.unwrap();
    }
}

struct InStream {
    connection: redis::aio::MultiplexedConnection,
    key: String,
}

impl InStream {
    async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let key = String::from("bare-insert");
        redis::cmd("DEL").arg(&key).exec_async(&mut connection).await.unwrap();
        Self { connection, key }
    }
}

#[async_trait]
impl Bare for InStream {
    async fn insert(&mut self, _number: i64, bytes: &str) {
        let mut add = redis::cmd("XADD");
        add.arg(&self.key).arg("*").arg("body").arg(bytes);
        add.exec_async(&mut self.connection).await.unwrap();
    }
}
