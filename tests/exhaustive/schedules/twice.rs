//! One turn that is submitted twice at once.

use advisor_tests::prelude::*;
use shuttle::future::spawn;

use crate::schedules::check::{check, key, said_in, turn_id};
use crate::schedules::explore;
use crate::schedules::leaves::{Seen, chain};
use crate::schedules::time::Time;
use crate::schedules::turns::{Shared, memories};

async fn twice(shared: Shared, on_busy: OnBusy, time: Time) {
    let (store, memories) = memories(shared, on_busy, 2);
    let seen = Seen::default();
    let passing = time.pass();
    let tasks: Vec<_> = memories
        .iter()
        .map(|memory| {
            let client = chain(memory, Phase::Round, &seen);
            spawn(async move {
                let turn = client.prompt().user(said_in(0)).conversation(key()).turn(turn_id(0));
                turn.call().await.map(|response| response.text()).map_err(|error| error.kind())
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    time.stop();
    passing.await.unwrap();
    let answers: Vec<_> = outcomes.iter().flatten().collect();
    assert!(answers.iter().all(|answer| **answer == format!("Done: {}", said_in(0))), "{answers:?}");
    let log = store.read(&key(), EntryId::BEGINNING, usize::MAX).await.unwrap();
    assert!(!answers.is_empty(), "K4: nobody was answered: {outcomes:?}, {log:#?}");
    if shared == Shared::Memory {
        assert_eq!(answers.len(), 2, "M5: one waits for the other: {outcomes:?}");
    }
    check(&store, &[0], &seen).await;
}

#[test]
fn law_t5_k4_m3_a_turn_that_one_process_submits_twice() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue, OnBusy::InterruptPrevious] {
        explore(&format!("twice, {on_busy:?}"), move |time| twice(Shared::Memory, on_busy, time));
    }
}

#[test]
fn law_t5_k4_m3_a_turn_that_two_processes_with_leases_submit() {
    explore("twice, leases", |time| twice(Shared::Leases, OnBusy::Reject, time));
}

#[test]
fn law_t5_k4_m3_a_turn_that_two_processes_submit() {
    explore("twice, no leases", |time| twice(Shared::Store, OnBusy::Reject, time));
}
