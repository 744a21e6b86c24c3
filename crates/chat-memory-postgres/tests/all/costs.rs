//! Tests of the rows and pages that a load reads, counted by the server.

use std::fmt::Write;
use std::time::{Duration, Instant};

use chat_memory_postgres::PostgresStore;
use chat_memory_postgres::deadpool_postgres::Pool;
use conversation_store::{ConversationStore, EntryId, ReadRange};

use crate::support::{Place, ended, key, said};

/// Rows and pages that the tables and their indexes were read for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Read {
    rows: i64,
    pages: i64,
}

const COUNTS: &str = "SELECT \
    (sum(seq_tup_read) + sum(idx_tup_fetch))::bigint, \
    (sum(heap_blks_read) + sum(heap_blks_hit) + sum(idx_blks_read) + sum(idx_blks_hit))::bigint \
    FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid) \
    WHERE pg_stat_user_tables.schemaname = $1";

async fn counts(pool: &Pool, place: &Place) -> Read {
    let client = pool.get().await.unwrap();
    client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let row = client.query_one(COUNTS, &[&place.schema]).await.unwrap();
    Read { rows: row.get(0), pages: row.get(1) }
}

/// Measures the second load of a conversation, on the pool's only connection.
async fn cost(
    store: &PostgresStore,
    pool: &Pool,
    place: &Place,
    name: &str,
    range: ReadRange,
) -> (Read, Duration) {
    store.load(&key(name), range).await.unwrap();
    let before = counts(pool, place).await;
    let read = store.load(&key(name), range).await.unwrap();
    let after = counts(pool, place).await;
    assert!(!read.entries.is_empty());
    let started = Instant::now();
    for _ in 0..200 {
        store.load(&key(name), range).await.unwrap();
    }
    (Read { rows: after.rows - before.rows, pages: after.pages - before.pages }, started.elapsed() / 200)
}

/// Writes a conversation of `entries` entries: turns of three messages and an end, and a last turn of
/// `last_turn` entries.
async fn write(store: &PostgresStore, name: &str, entries: u32, last_turn: u32) {
    let mut version = store.load(&key(name), ReadRange::LastEntries(0)).await.unwrap().version;
    let (mut turns, mut first) = (Vec::new(), Vec::new());
    for number in 0..(entries - last_turn) / 4 {
        let turn = format!("t{number}");
        first.extend(said(&turn, 0, &["a question", "an answer of some length", "thanks"]).entries);
        first.extend(ended(&turn, 1).entries);
    }
    for part in first.chunks(2_000) {
        let mut batch = said("writer", u32::try_from(turns.len()).unwrap(), &[]);
        batch.entries = part.to_vec();
        turns.push(version);
        version = store.append(&key(name), version, batch).await.unwrap();
    }
    let mut last = said("last", 0, &vec!["x"; usize::try_from(last_turn - 1).unwrap()]);
    last.entries.extend(ended("last", 1).entries);
    version = store.append(&key(name), version, last).await.unwrap();
    assert_eq!(version.as_u64(), u64::from(entries));
}

/// Forks `times` times, each time after the turn before the last one.
async fn fork_point(store: &PostgresStore, name: &str, times: u32) {
    for round in 0..times {
        let read = store.load(&key(name), ReadRange::LastTurns(2)).await.unwrap();
        let before = read.entries.iter().position(|entry| entry.turn != read.entries[0].turn).unwrap();
        let parent = EntryId::new(read.entries[before - 1].seq);
        let mut batch = said(&format!("b{round}"), 0, &["again", "an answer"]).with_parent(parent);
        batch.entries.extend(ended(&format!("b{round}"), 1).entries);
        store.append(&key(name), read.version, batch).await.unwrap();
    }
}

#[tokio::test]
async fn reading_branch_end_cost_is_independent_of_log() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    for (name, entries) in [("short", 400), ("long", 100_000), ("plain", 400)] {
        write(&store, name, entries, 4).await;
    }
    for name in ["short", "long"] {
        fork_point(&store, name, 20).await;
    }
    let mut report = String::new();
    for range in [ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let (short, _) = cost(&store, &pool, &place, "short", range).await;
        let (long, long_time) = cost(&store, &pool, &place, "long", range).await;
        let (plain, plain_time) = cost(&store, &pool, &place, "plain", range).await;
        let ratio = long_time.as_secs_f64() / plain_time.as_secs_f64();
        writeln!(report, "{range:?}: long {long:?}, short {short:?}, plain {plain:?}; time {ratio:.2}")
            .unwrap();
        assert!(long.rows <= 2 * short.rows && long.rows < 120, "rows read\n{report}");
        assert!(long.pages <= 2 * short.pages, "pages read\n{report}");
    }
    let older = async |name: &str, tip: u64, range| {
        store.load_branch(&key(name), EntryId::new(tip), range).await.unwrap();
        let before = counts(&pool, &place).await;
        assert!(!store.load_branch(&key(name), EntryId::new(tip), range).await.unwrap().entries.is_empty());
        let after = counts(&pool, &place).await;
        Read { rows: after.rows - before.rows, pages: after.pages - before.pages }
    };
    for range in [ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let short = older("short", 400, range).await;
        for tip in [400, 50_000, 100_000] {
            let long = older("long", tip, range).await;
            writeln!(report, "{range:?} of the older branch to {tip}: {long:?}, of short {short:?}").unwrap();
            assert!(long.rows <= 2 * short.rows && long.rows < 120, "rows read\n{report}");
            assert!(long.pages <= 2 * short.pages, "pages read\n{report}");
        }
    }
    let page = async |name: &str, after: u64| {
        store.read(&key(name), EntryId::new(after), 50).await.unwrap();
        let before = counts(&pool, &place).await;
        assert_eq!(store.read(&key(name), EntryId::new(after), 50).await.unwrap().len(), 50);
        let after = counts(&pool, &place).await;
        Read { rows: after.rows - before.rows, pages: after.pages - before.pages }
    };
    let short = page("short", 100).await;
    for after in [0, 50_000, 99_900] {
        let long = page("long", after).await;
        writeln!(report, "a page of 50 after {after}: {long:?}, of short {short:?}").unwrap();
        assert!(long.rows <= 2 * short.rows && long.rows < 120, "rows read\n{report}");
        assert!(long.pages <= 2 * short.pages, "pages read\n{report}");
    }
    eprintln!("{report}");
    place.remove().await;
}

#[tokio::test]
async fn reading_conversation_end_cost_is_independent_of_length() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    write(&store, "short", 100, 4).await;
    write(&store, "long", 100_000, 4).await;
    write(&store, "long-turn", 20_000, 10_000).await;
    let mut report = String::new();
    for analysed in [false, true] {
        if analysed {
            place.execute("ANALYZE {schema}.entries; ANALYZE {schema}.conversations").await;
        }
        for range in [ReadRange::LastEntries(40), ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
            let (short, short_time) = cost(&store, &pool, &place, "short", range).await;
            // The turns of the one with a long turn are another matter: they are as long as they are.
            let turns = matches!(range, ReadRange::LastTurns(_));
            for name in if turns { &["long"][..] } else { &["long", "long-turn"] } {
                let (long, long_time) = cost(&store, &pool, &place, name, range).await;
                let ratio = long_time.as_secs_f64() / short_time.as_secs_f64();
                writeln!(report, "{range:?} of {name}: {long:?}, of short: {short:?}; time {ratio:.2}")
                    .unwrap();
                assert!(long.rows <= 2 * short.rows && long.rows < 60, "rows read\n{report}");
                assert!(long.pages <= 2 * short.pages, "pages read\n{report}");
            }
        }
    }
    eprintln!("{report}");
    place.remove().await;
}
