//! Tests of leases beyond the conformance suite: their keys.

use std::time::Duration;

use advisor_core::TurnId;
use conversation_store::{ConversationStore, FencingToken, Version};

use crate::support::{Place, key, said};

const HOUR: Duration = Duration::from_secs(3600);

fn turn() -> TurnId {
    TurnId::new("t").unwrap()
}

#[tokio::test]
async fn fences_grow_even_if_the_lease_was_lost() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let leases = store.leases().unwrap();
    let mut last = FencingToken(0);
    for _ in 0..50 {
        let token = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        place.run::<i64>("DEL @lease").await;
    }
    // Ahead of the clock, as after a clock that was put back.
    let ahead = (1_u64 << 53) - 100;
    place.run::<i64>(&format!("HSET @lease fence {ahead} turn x until 0")).await;
    let token = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    assert_eq!(token, FencingToken(ahead + 1));
    place.remove().await;
}

#[tokio::test]
async fn a_fence_never_expires() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let leases = store.leases().unwrap();
    let kept = async || assert_eq!(place.run::<i64>("PTTL @lease").await, -1);
    // Nobody wrote under it.
    let old = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    kept().await;
    let token = leases.acquire(&key("c"), &turn(), HOUR, Some(old), false).await.unwrap();
    leases.release(&key("c"), token).await.unwrap();
    kept().await;
    store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"]).with_token(token)).await.unwrap();
    store.delete(&key("c")).await.unwrap();
    kept().await;
    place.remove().await;
}
