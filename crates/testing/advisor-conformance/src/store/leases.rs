//! Clauses about leases. A store without leases passes.

use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{Store, new_key, said};
use conversation_store::StoreError::{Fenced, Gone, Locked};
use conversation_store::{FencingToken, Leases, Page, ReadRange, Result, Version};

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(20);
/// The longest wait for a lease of a moment to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which a place in the queue lasts, and for which a waiting turn may be passed.
const PLACE_LASTS: Duration = Duration::from_secs(3);
const PASSED_FOR: Duration = Duration::from_secs(10);

/// While one turn holds a conversation, neither another turn nor the same one can acquire it. Other conversations
/// are free.
pub async fn a_conversation_is_held_by_one_turn(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let token = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    for name in ["a", "b"] {
        match leases.acquire(&key, &turn(name), HOUR, None, false).await {
            Err(Locked { turn, token: held, remaining }) => {
                assert_eq!((turn.as_str(), held), ("a", token));
                assert!(remaining > HOUR / 2 && remaining <= HOUR, "{remaining:?}");
            }
            other => panic!("a second turn got {other:?}"),
        }
    }
    leases.acquire(&new_key(), &turn("b"), HOUR, None, false).await.unwrap();
    leases.release(&key, token).await.unwrap();
    let next = leases.acquire(&key, &turn("b"), HOUR, None, false).await.unwrap();
    assert!(next > token, "tokens grow");
}

/// A turn that names the holder's token takes over, and the old lease is invalid from that moment.
pub async fn a_lease_takes_the_place_of_another(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let old = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    let version = store.append(&key, Version::EMPTY, said("a", 0, &["x"]).with_token(old)).await.unwrap();
    let new = leases.acquire(&key, &turn("b"), HOUR, Some(old), false).await.unwrap();
    assert!(new > old);
    assert_passed_on(&store, &key, version, old).await;
    refused!(leases.acquire(&key, &turn("c"), HOUR, Some(old), false), Locked { token, .. } if token == new);
    leases.release(&key, old).await.unwrap();
    // An outdated token releases nothing.
    refused!(leases.acquire(&key, &turn("c"), HOUR, None, false), Locked { .. });
    let version = store.append(&key, version, said("b", 0, &["y"]).with_token(new)).await.unwrap();
    assert_eq!(version, Version(2));
}

/// An expired lease frees the conversation, but stays valid until another turn acquires it.
pub async fn a_lease_ends_with_its_time(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let old = leases.acquire(&key, &turn("a"), MOMENT, None, false).await.unwrap();
    let acquired = timeout(PATIENCE, acquire_when_free(leases, &key)).await;
    let new = acquired.unwrap_or_else(|_| panic!("a lease of {MOMENT:?} has not ended after {PATIENCE:?}"));
    assert_passed_on(&store, &key, Version::EMPTY, old).await;
    leases.release(&key, new).await.unwrap();
    assert_passed_on(&store, &key, Version::EMPTY, old).await;
    store.append(&key, Version::EMPTY, said("b", 0, &["x"]).with_token(new)).await.unwrap();
}

/// A lease whose time is over still writes and can be renewed, and a released one can be renewed, as long as no other
/// turn has acquired the conversation.
pub async fn an_ended_lease_is_valid_until_it_passes_on(store: Store) {
    let Some(leases) = store.leases() else { return };
    for is_released in [false, true] {
        let key = new_key();
        let token = leases.acquire(&key, &turn("a"), MOMENT, None, false).await.unwrap();
        match is_released {
            true => leases.release(&key, token).await.unwrap(),
            false => {
                sleep(MOMENT * 2).await;
                store.append(&key, Version::EMPTY, said("a", 0, &["x"]).with_token(token)).await.unwrap();
            }
        }
        leases.renew(&key, token, HOUR).await.unwrap();
        let other = turn("b");
        let held = leases.acquire(&key, &other, HOUR, None, false);
        refused!(held, Locked { remaining, .. } if remaining > HOUR / 2);
        leases.release(&key, token).await.unwrap();
        leases.acquire(&key, &turn("b"), HOUR, None, false).await.unwrap();
        refused!(leases.renew(&key, token, HOUR), Fenced);
    }
}

/// A lease may be for ever, and a token that was never issued takes over, renews and releases nothing.
pub async fn extreme_tokens_and_durations_are_exact(store: Store) {
    let Some(leases) = store.leases() else { return };
    let (key, strange) = (new_key(), FencingToken(u64::MAX));
    let token = leases.acquire(&key, &turn("a"), Duration::MAX, None, false).await.unwrap();
    let other = turn("b");
    let taken = leases.acquire(&key, &other, HOUR, Some(strange), false);
    refused!(taken, Locked { token: held, remaining, .. } if held == token && remaining > 24 * HOUR);
    refused!(leases.renew(&key, strange, HOUR), Fenced);
    leases.release(&key, strange).await.unwrap();
    assert_locked_by("a", &leases.acquire(&key, &turn("b"), HOUR, None, false).await);
}

/// A lease creates no conversation, and outlives the deletion of one.
pub async fn a_held_conversation_need_not_exist(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let key = ConversationKey::in_tenant(key.conversation(), "c").unwrap();
    let token = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap().version, Version::EMPTY);
    assert_eq!(store.list(&Page::first(key.tenant(), 9)).await.unwrap(), []);
    refused!(store.append(&key, Version(1), said("a", 0, &["x"]).with_token(token)), Gone);
    let version = store.append(&key, Version::EMPTY, said("a", 0, &["x"]).with_token(token)).await.unwrap();
    store.delete(&key).await.unwrap();
    refused!(leases.acquire(&key, &turn("b"), HOUR, None, false), Locked { .. });
    refused!(store.append(&key, version, said("a", 1, &["y"]).with_token(token)), Gone);
    leases.release(&key, token).await.unwrap();
    assert_eq!(store.list(&Page::first(key.tenant(), 9)).await.unwrap(), []);
}

/// An issued token counts for ever: the holder before is refused also after the later lease was released and the
/// conversation deleted, or was never begun.
pub async fn an_issued_token_outlives_a_deletion(store: Store) {
    let Some(leases) = store.leases() else { return };
    for begins in [true, false] {
        let key = new_key();
        let old = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
        let new = leases.acquire(&key, &turn("b"), HOUR, Some(old), false).await.unwrap();
        if begins {
            store.append(&key, Version::EMPTY, said("b", 0, &["x"]).with_token(new)).await.unwrap();
        }
        leases.release(&key, new).await.unwrap();
        store.delete(&key).await.unwrap();
        assert_passed_on(&store, &key, Version::EMPTY, old).await;
        refused!(store.append(&key, Version(1), said("late", 0, &["late"]).with_token(old)), Fenced);
        let next = leases.acquire(&key, &turn("c"), HOUR, None, false).await.unwrap();
        assert!(next > new, "tokens grow");
        store.append(&key, Version::EMPTY, said("c", 0, &["x"]).with_token(next)).await.unwrap();
        assert_passed_on(&store, &key, Version(1), new).await;
    }
}

/// Turns that wait get the lease in the order in which they came. A request that does not wait comes after them.
pub async fn waiting_turns_get_the_lease_in_order(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let mut held = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    let names = ["b", "c", "d"];
    for name in names {
        assert_locked_by("a", &leases.acquire(&key, &turn(name), HOUR, None, true).await);
    }
    for (first, name) in names.into_iter().enumerate() {
        leases.release(&key, held).await.unwrap();
        let refused = leases.acquire(&key, &turn("e"), HOUR, None, false).await;
        assert_locked_by(name, &refused);
        let names_last = matches!(refused, Err(Locked { token, .. }) if token == held);
        assert!(names_last, "it does not name the last token, {held:?}: {refused:?}");
        for later in names.into_iter().skip(first + 1).rev() {
            assert_locked_by(name, &leases.acquire(&key, &turn(later), HOUR, None, true).await);
        }
        held = leases.acquire(&key, &turn(name), HOUR, None, true).await.unwrap();
    }
    leases.release(&key, held).await.unwrap();
    leases.acquire(&key, &turn("e"), HOUR, None, false).await.unwrap();
}

/// A turn that waits and asks no more loses its place.
pub async fn a_place_in_the_queue_ends_with_its_time(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let held = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    for name in ["b", "c"] {
        assert_locked_by("a", &leases.acquire(&key, &turn(name), HOUR, None, true).await);
    }
    leases.release(&key, held).await.unwrap();
    let acquired = timeout(PATIENCE, async {
        loop {
            match leases.acquire(&key, &turn("c"), HOUR, None, true).await {
                Err(Locked { turn: first, remaining, .. }) => {
                    assert!(first == turn("b") && remaining <= PLACE_LASTS, "{first}: {remaining:?}");
                    sleep(remaining.clamp(Duration::from_millis(1), MOMENT)).await;
                }
                given => return given.unwrap(),
            }
        }
    });
    assert!(acquired.await.is_ok(), "the place of a turn that is gone never ends");
}

/// A turn that takes the lease over passes those that wait, and they keep their places.
pub async fn a_takeover_passes_waiting_turns(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let held = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    assert_locked_by("a", &leases.acquire(&key, &turn("b"), HOUR, None, true).await);
    let next = leases.acquire(&key, &turn("c"), HOUR, Some(held), false).await.unwrap();
    leases.release(&key, next).await.unwrap();
    assert_locked_by("b", &leases.acquire(&key, &turn("d"), HOUR, None, false).await);
    let next = leases.acquire(&key, &turn("d"), HOUR, Some(next), false).await.unwrap();
    leases.release(&key, next).await.unwrap();
    leases.acquire(&key, &turn("b"), HOUR, None, true).await.unwrap();
}

/// A turn that has waited for ten seconds is passed by no takeover. The macro does not run this clause:
/// it takes that time.
pub async fn a_takeover_passes_no_turn_that_waited_long(store: Store) {
    let Some(leases) = store.leases() else { return };
    let key = new_key();
    let mut held = leases.acquire(&key, &turn("a"), HOUR, None, false).await.unwrap();
    let (mut holder, mut next, begun) = ("a", "c", Instant::now());
    loop {
        assert_locked_by(holder, &leases.acquire(&key, &turn("b"), HOUR, None, true).await);
        match leases.acquire(&key, &turn(next), HOUR, Some(held), false).await {
            Ok(token) => held = token,
            Err(Locked { turn, token, .. }) => {
                assert_eq!((turn.as_str(), token), ("b", held));
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
        (holder, next) = (next, holder);
        assert!(begun.elapsed() < PASSED_FOR + PATIENCE, "takeovers pass it for ever");
        sleep(Duration::from_secs(1)).await;
    }
    assert!(begun.elapsed() + MOMENT > PASSED_FOR, "after {:?} already", begun.elapsed());
    leases.release(&key, held).await.unwrap();
    leases.acquire(&key, &turn("b"), HOUR, None, true).await.unwrap();
}

/// One of many concurrent requests gets the lease.
pub async fn one_concurrent_request_gets_the_lease(store: Store) {
    if store.leases().is_none() {
        return;
    }
    for _ in 0..8 {
        let key = new_key();
        let mut asking = JoinSet::new();
        for asker in 0..8 {
            let (store, key) = (Store::clone(&store), key.clone());
            asking.spawn(async move {
                store.leases().unwrap().acquire(&key, &turn(&asker.to_string()), HOUR, None, false).await
            });
        }
        let (given, refused): (Vec<_>, Vec<_>) = asking.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!(given.len(), 1);
        assert!(refused.iter().all(|refused| matches!(refused, Err(Locked { .. }))), "{refused:?}");
    }
}

async fn assert_passed_on(store: &Store, key: &ConversationKey, version: Version, old: FencingToken) {
    let late = said("late", 0, &["late"]).with_token(old);
    refused!(store.append(key, version, late), Fenced, "the old right still writes");
    refused!(store.leases().unwrap().renew(key, old, HOUR), Fenced, "the old right is renewed");
    assert_eq!(store.load(key, ReadRange::LastEntries(0)).await.unwrap().version, version, "it left a trace");
}

fn assert_locked_by(name: &str, acquired: &Result<FencingToken>) {
    assert!(matches!(&acquired, Err(Locked { turn, .. }) if turn.as_str() == name), "{acquired:?}");
}

async fn acquire_when_free(leases: &dyn Leases, key: &ConversationKey) -> FencingToken {
    loop {
        match leases.acquire(key, &turn("b"), HOUR, None, false).await {
            Err(Locked { remaining, .. }) => {
                assert!(remaining <= MOMENT);
                sleep(remaining.max(Duration::from_millis(1))).await;
            }
            given => return given.unwrap(),
        }
    }
}

fn turn(name: &str) -> TurnId {
    TurnId::new(name).unwrap()
}
