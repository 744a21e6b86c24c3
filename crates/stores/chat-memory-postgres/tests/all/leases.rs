//! Tests of leases beyond the conformance suite: their rows, and races.

use std::fmt::Debug;
use std::time::Duration;

use advisor_core::TurnId;
use conversation_store::{ConversationStore, FencingToken, StoreError, Version};

use crate::support::{Place, key, said};

const HOUR: Duration = Duration::from_secs(3600);

fn turn() -> TurnId {
    TurnId::new("t").unwrap()
}

/// Polls a statement until it waits for a lock.
async fn wait_for_a_lock<T: Debug>(
    place: &Place,
    function: &str,
    work: &mut (impl Future<Output = T> + Unpin),
) {
    let waiting = "SELECT count(*) FROM pg_stat_activity \
        WHERE wait_event_type = 'Lock' AND state = 'active' AND query LIKE '%' || $1 || '%' || $2 || '%'";
    let client = place.client().await;
    loop {
        tokio::select! {
            biased;
            done = &mut *work => panic!("it does not wait: {done:?}"),
            () = tokio::task::yield_now() => {}
        }
        let row = client.query_one(waiting, &[&place.schema, &function]).await.unwrap();
        if row.get::<_, i64>(0) == 1 {
            return;
        }
    }
}

#[tokio::test]
async fn writer_is_refused_when_fence_passes_on() {
    let Some(place) = Place::new() else { return };
    let store = place.store(2).await;
    let leases = store.leases().unwrap();
    let old = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    let version =
        store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"]).with_token(old)).await.unwrap();
    // The right passes on in a transaction that is not done yet, and an append with the old one comes.
    let other = place.client().await;
    let take =
        format!("BEGIN; SELECT {{schema}}.acquire_lease('default', 'c', 'u', 3600000000, {}, false)", old.0);
    other.batch_execute(&place.sql(&take)).await.unwrap();
    let conversation = key("c");
    let mut late = store.append(&conversation, version, said("t", 1, &["y"]).with_token(old));
    wait_for_a_lock(&place, "append_batch", &mut late).await;
    other.batch_execute("COMMIT").await.unwrap();
    let late = late.await;
    assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
    place.remove().await;
}

#[tokio::test]
async fn fence_is_granted_after_writers_with_lower_fence() {
    let Some(place) = Place::new() else { return };
    let store = place.store(2).await;
    store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    let other = place.client().await;
    let write = "BEGIN; SELECT {schema}.append_batch('default', 'c', 1, 't', 1, 'step', 5, ARRAY['t'], \
        ARRAY['{\"format\":1,\"kind\":\"summary\",\"value\":{\"until\":0,\"text\":\"late\"}}'], ARRAY[NULL]::boolean[], ARRAY[1], NULL, NULL)";
    other.batch_execute(&place.sql(write)).await.unwrap();
    let (conversation, turn) = (key("c"), turn());
    let mut given = store.leases().unwrap().acquire(&conversation, &turn, HOUR, None, false);
    wait_for_a_lock(&place, "acquire_lease", &mut given).await;
    other.batch_execute("COMMIT").await.unwrap();
    assert!(given.await.unwrap() > FencingToken(5));
    place.remove().await;
}

#[tokio::test]
async fn granted_fence_exceeds_every_written_fence() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let leases = store.leases().unwrap();
    let held = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    // Of somebody who counts tokens himself.
    let higher = FencingToken(held.0 + 6);
    store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"]).with_token(higher)).await.unwrap();
    let renewed = leases.renew(&key("c"), held, HOUR).await;
    assert!(matches!(renewed, Err(StoreError::Fenced)), "{renewed:?}");
    let given = leases.acquire(&key("c"), &turn(), HOUR, Some(higher), false).await.unwrap();
    assert!(given > higher, "{given:?} is not above {higher:?}");
    let late = store.append(&key("c"), Version(1), said("t", 1, &["y"]).with_token(higher)).await;
    assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
    place.remove().await;
}

#[tokio::test]
async fn fences_grow_even_if_the_lease_was_lost() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let leases = store.leases().unwrap();
    let mut last = FencingToken(0);
    for _ in 0..20 {
        let token = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        place.execute("DELETE FROM {schema}.leases").await;
    }
    place.remove().await;
}
