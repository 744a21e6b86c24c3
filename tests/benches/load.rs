//! Measures a load of the end of a long conversation in each store, beside a load of the same size from a short
//! one.
//!
//! The two alternate, so that other work of the machine affects both. Run it with `cargo bench -p advisor-tests
//! --bench load`; `ADVISOR_POSTGRES_URL` and `ADVISOR_REDIS_URL` name the servers. Tests of each store count
//! the rows that a load reads; this program measures its time.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::time::{Duration, Instant};

use advisor_chain::chain::TurnEnd;
use advisor_chain::memory::ConversationStore;
use advisor_chain::memory::store::{Batch, BatchKey, EntryKind, NewEntry, ReadRange, Version};
use advisor_chain::postgres::PostgresStore;
use advisor_chain::redis::RedisStore;
use advisor_chain::sqlite::SqliteStore;
use advisor_chain::{ConversationKey, FinishReason, InMemoryStore, Message, TurnId};
use advisor_tests::stores::server;

/// Entries of the two conversations.
const SHORT: u64 = 100;
const LONG: u64 = 100_000;
/// Entries that are loaded.
const LOADED: usize = 20;
/// Loads of each that are timed, after half as many that are not.
const LOADS: usize = 400;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("{LOADS} loads of the last {LOADED} entries, of {SHORT} and of {LONG}");
    println!("{:<12} {:>16} {:>16} {:>12}", "store", "of short p50", "of long p50", "ratio of p50");
    print("in memory", InMemoryStore::new()).await;
    let folder = tempfile::tempdir().unwrap();
    print("SQLite", SqliteStore::open(folder.path().join("store.db")).await.unwrap()).await;
    if let Some(url) = server("ADVISOR_POSTGRES_URL") {
        print("PostgreSQL", PostgresStore::connect(&url).await.unwrap()).await;
    }
    if let Some(url) = server("ADVISOR_REDIS_URL") {
        print("Redis", RedisStore::connect(&url).await.unwrap()).await;
    }
}

async fn print(name: &str, store: impl ConversationStore) {
    let keys = [write(&store, SHORT).await, write(&store, LONG).await];
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..LOADS + LOADS / 2 {
        for of in [number % 2, 1 - number % 2] {
            times[of].push(load(&store, &keys[of]).await);
        }
    }
    for key in &keys {
        store.delete(key).await.unwrap();
    }
    let [short, long] = times.map(|times| median(times[LOADS / 2..].to_vec()));
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    println!("{name:<12} {:>16} {:>16} {ratio:>12.2}", micros(short), micros(long));
}

/// Writes a conversation of `entries` entries, in turns of four.
async fn write(store: &impl ConversationStore, entries: u64) -> ConversationKey {
    let key = ConversationKey::in_tenant("bench", TurnId::random().as_str()).unwrap();
    let writer = TurnId::random();
    let all: Vec<_> = (0..entries / 4).flat_map(turn).collect();
    let mut version = Version::EMPTY;
    for (number, part) in (0..).zip(all.chunks(2000)) {
        let batch = Batch::new(BatchKey::new(writer.clone(), number, "written"), part.to_vec());
        version = store.append(&key, version, batch).await.unwrap();
    }
    assert_eq!(version.0, entries);
    key
}

fn turn(number: u64) -> [NewEntry; 4] {
    let turn = TurnId::random();
    let said = |message| NewEntry::new(turn.clone(), EntryKind::Message(message));
    [
        said(Message::user(format!("question {number}"))),
        said(Message::assistant(format!("an answer of some length to question {number}"))),
        said(Message::assistant("and the rest of it")),
        NewEntry::new(turn.clone(), EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))),
    ]
}

async fn load(store: &impl ConversationStore, key: &ConversationKey) -> Duration {
    let began = Instant::now();
    let read = store.load(key, ReadRange::LastEntries(LOADED)).await.unwrap();
    let took = began.elapsed();
    assert_eq!(read.entries.len(), LOADED);
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
