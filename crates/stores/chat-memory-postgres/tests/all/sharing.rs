//! Many writers, and stores that share a database.

use std::sync::Arc;

use advisor_conformance::store::{
    both_stores_see_each_others_writes_at_once, writers_at_two_stores_lose_nothing,
};

use crate::support::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_of_two_hundred_appends_lose_nothing() {
    let Some(place) = Place::new() else { return };
    writers_at_two_stores_lose_nothing(
        [Arc::new(place.store(4).await), Arc::new(place.store(4).await)],
        8,
        200,
    )
    .await;
    place.remove().await;
}

#[tokio::test]
async fn two_stores_share_writes_at_once() {
    let Some(place) = Place::new() else { return };
    let (one, other) = (place.store(2).await, place.store(2).await);
    both_stores_see_each_others_writes_at_once(Arc::new(one), Arc::new(other)).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_races_between_strict_transactions_are_run_again() {
    let Some(mut place) = Place::new() else { return };
    for level in ["repeatable\\ read", "serializable"] {
        place.config.options(format!("-c default_transaction_isolation={level}"));
        let stores = [place.store(4).await, place.store(4).await];
        writers_at_two_stores_lose_nothing(stores.map(|store| Arc::new(store) as _), 3, 25).await;
    }
    place.remove().await;
}
