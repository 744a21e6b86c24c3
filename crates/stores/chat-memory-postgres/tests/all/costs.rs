//! Tests of the rows and pages that a load reads, counted by the server.

use advisor_conformance::store::{fork_near_the_end, write_long};
use chat_memory_postgres::PostgresStore;
use chat_memory_postgres::deadpool_postgres::Pool;
use conversation_store::{ConversationStore, EntryId, ReadRange};

use crate::support::{Place, key};

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

/// Measures the second run of some work, on the pool's only connection.
async fn cost(pool: &Pool, place: &Place, read: impl AsyncFn() -> usize) -> Read {
    assert!(read().await > 0);
    let before = counts(pool, place).await;
    read().await;
    let after = counts(pool, place).await;
    Read { rows: after.rows - before.rows, pages: after.pages - before.pages }
}

#[tokio::test]
async fn reading_branch_end_cost_is_independent_of_log() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    for (name, entries) in [("short", 400), ("long", 100_000)] {
        write_long(&store, &key(name), entries, 4).await;
        fork_near_the_end(&store, &key(name), 20).await;
    }
    let load = async |name: &str, range| {
        cost(&pool, &place, async || store.load(&key(name), range).await.unwrap().entries.len()).await
    };
    let older = async |name: &str, tip: u64, range| {
        let tip = EntryId(tip);
        let load = async || store.load_branch(&key(name), tip, range).await.unwrap().entries.len();
        cost(&pool, &place, load).await
    };
    let page = async |name: &str, after: u64| {
        let after = EntryId(after);
        cost(&pool, &place, async || store.read(&key(name), after, 50).await.unwrap().len()).await
    };
    for range in [ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        assert_alike(load("long", range).await, load("short", range).await, 120);
        for tip in [400, 50_000, 100_000] {
            assert_alike(older("long", tip, range).await, older("short", 400, range).await, 120);
        }
    }
    for after in [0, 50_000, 99_900] {
        assert_alike(page("long", after).await, page("short", 100).await, 120);
    }
    place.remove().await;
}

#[tokio::test]
async fn reading_conversation_end_cost_is_independent_of_length() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    for (name, entries, last_turn) in [("short", 100, 4), ("long", 100_000, 4), ("long-turn", 20_000, 10_000)]
    {
        write_long(&store, &key(name), entries, last_turn).await;
    }
    let load = async |name: &str, range| {
        cost(&pool, &place, async || store.load(&key(name), range).await.unwrap().entries.len()).await
    };
    for analysed in [false, true] {
        if analysed {
            place.execute("ANALYZE {schema}.entries; ANALYZE {schema}.conversations").await;
        }
        for range in [ReadRange::LastEntries(40), ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
            let short = load("short", range).await;
            assert_alike(load("long", range).await, short, 60);
            // The turns of the one with a long turn are as long as they are.
            if !matches!(range, ReadRange::LastTurns(_)) {
                assert_alike(load("long-turn", range).await, short, 60);
            }
        }
    }
    place.remove().await;
}

/// Checks that reading from a long conversation costs about as much as from a short one, and at most so many rows.
#[track_caller]
fn assert_alike(long: Read, short: Read, most_rows: i64) {
    assert!(long.rows <= 2 * short.rows && long.rows < most_rows, "rows: {long:?}, of short {short:?}");
    assert!(long.pages <= 2 * short.pages, "pages: {long:?}, of short {short:?}");
}
