//! Tests of leases beyond the conformance suite: their keys.

use std::time::Duration;

use advisor_core::TurnId;
use conversation_store::{ConversationStore, FencingToken, StoreError, Version};

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
    let mut last = FencingToken::new(0);
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
    assert_eq!(token, FencingToken::new(ahead + 1));
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

#[tokio::test]
async fn extreme_fences_and_durations_are_handled_exactly() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let leases = store.leases().unwrap();
    let token = leases.acquire(&key("c"), &turn(), Duration::MAX, None, false).await.unwrap();
    let strange = Some(FencingToken::new(u64::MAX));
    match leases.acquire(&key("c"), &turn(), HOUR, strange, false).await {
        Err(StoreError::Locked { token: held, remaining, .. }) => {
            assert!(held == token && remaining > Duration::from_secs(364 * 24 * 3600), "{remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    let renewed = leases.renew(&key("c"), FencingToken::new(u64::MAX), HOUR).await;
    assert!(matches!(renewed, Err(StoreError::Fenced)), "{renewed:?}");
    leases.release(&key("c"), FencingToken::new(u64::MAX)).await.unwrap();
    assert!(leases.acquire(&key("c"), &turn(), HOUR, None, false).await.is_err());
    leases.release(&key("c"), token).await.unwrap();
    leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn takeover_does_not_pass_a_turn_that_has_waited_for_long() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let leases = store.leases().unwrap();
    let (other, third) = (TurnId::new("waits").unwrap(), TurnId::new("third").unwrap());
    let held = leases.acquire(&key("c"), &turn(), HOUR, None, false).await.unwrap();
    leases.acquire(&key("c"), &other, HOUR, None, true).await.unwrap_err();
    let held = leases.acquire(&key("c"), &third, HOUR, Some(held), false).await.unwrap();
    // It has waited since the beginning of time.
    place.run::<i64>(r#"HSET @lease waiting [["waits","0","9000000000000000"]]"#).await;
    let refused = leases.acquire(&key("c"), &turn(), HOUR, Some(held), true).await;
    assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
    // A turn goes on with a lease of its own.
    let held = leases.acquire(&key("c"), &third, HOUR, Some(held), false).await.unwrap();
    leases.release(&key("c"), held).await.unwrap();
    leases.acquire(&key("c"), &other, HOUR, None, true).await.unwrap();
    place.remove().await;
}
