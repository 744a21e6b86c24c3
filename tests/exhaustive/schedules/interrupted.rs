//! Turns that are cancelled or dropped at any moment, while another one waits or begins.

use advisor_tests::prelude::*;
use shuttle::future::{spawn, yield_now};

use crate::schedules::check::{check, key, said_in, turn_id};
use crate::schedules::leaves::{Seen, chain};
use crate::schedules::time::Time;
use crate::schedules::turns::{Shared, memories};
use crate::schedules::{Tally, explore};

/// The way in which another task stops a turn.
#[derive(Clone, Copy, Debug)]
enum Stopped {
    Cancelled(OnDrop),
    /// The task that reads it is gone.
    Dropped(OnDrop),
}

async fn stopped_at_any_moment(stopped: Stopped, shared: Shared, begun: Tally, time: Time) {
    let (store, memories) = memories(shared, OnBusy::Queue, 2);
    let seen = Seen::default();
    let passing = time.pass();
    let turn = |number: usize| {
        let client = chain(&memories[number], Phase::Round, &seen);
        client.prompt().user(said_in(number)).conversation(key()).turn(turn_id(number)).stream()
    };
    let (first, second) = (turn(0), turn(1));
    let handle = first.handle();
    let first = match stopped {
        Stopped::Dropped(how) => first.with_on_drop(how),
        Stopped::Cancelled(_) => first,
    };
    let first = spawn(async move { first.call().await.is_ok() });
    let second = spawn(async move { second.call().await.map(|response| response.text()) });
    let stopping = async {
        for _ in 0..shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..40) {
            yield_now().await;
        }
        match stopped {
            Stopped::Cancelled(how) => handle.cancel(how),
            Stopped::Dropped(_) => first.abort(),
        }
    };
    stopping.await;
    let mut acknowledged = Vec::new();
    if first.await.is_ok_and(|answered| answered) {
        acknowledged.push(0);
    }
    let second = second.await.unwrap();
    if shared == Shared::Memory {
        assert_eq!(second.as_deref().ok(), Some("Done: say 1"), "K4: the turn that waited begins");
    }
    begun.add(usize::from(second.is_ok()));
    acknowledged.extend(second.is_ok().then_some(1));
    time.stop();
    passing.await.unwrap();
    check(&store, &acknowledged, &seen).await;
}

fn explore_stops(stopped: Stopped) {
    for shared in [Shared::Memory, Shared::Leases] {
        let (what, begun) = (format!("{stopped:?}, {shared:?}"), Tally::default());
        let counted = begun.clone();
        let tried = explore(&what, move |time| stopped_at_any_moment(stopped, shared, begun.clone(), time));
        counted.expect(95, tried, &what);
    }
}

#[test]
fn law_k4_m1_m3_a_turn_that_is_cancelled_at_any_moment() {
    explore_stops(Stopped::Cancelled(OnDrop::KeepPartial));
    explore_stops(Stopped::Cancelled(OnDrop::Rollback));
}

#[test]
fn law_k4_m1_m3_a_turn_that_is_dropped_at_any_moment() {
    explore_stops(Stopped::Dropped(OnDrop::KeepPartial));
    explore_stops(Stopped::Dropped(OnDrop::Rollback));
}
