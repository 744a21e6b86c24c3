//! Turns of one conversation that run at once.

use advisor_tests::prelude::*;
use shuttle::future::spawn;

use crate::schedules::check::{check, key, said_in, turn_id};
use crate::schedules::leaves::{Seen, chain, yielding};
use crate::schedules::time::Time;
use crate::schedules::{Tally, explore};

/// Short enough that a turn that is often passed over loses it.
pub(crate) const LEASE: Duration = Duration::from_millis(600);

const TURNS: usize = 3;

/// The memory or store that the turns share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// One memory, as turns of one process do.
    Memory,
    /// A store with leases.
    Leases,
    /// A store without them.
    Store,
}

/// Returns a memory for each of `count` tasks.
pub(crate) fn memories(
    shared: Shared,
    on_busy: OnBusy,
    tasks: usize,
) -> (InMemoryStore, Vec<ChatMemoryAdvisor>) {
    let store = InMemoryStore::new();
    let store = if shared == Shared::Leases { store.with_leases() } else { store };
    let yielding = yielding(store.clone());
    let memory = || {
        let memory = ChatMemoryAdvisor::new(yielding.clone());
        memory.with_on_busy(on_busy).with_lease_ttl(LEASE)
    };
    let memories = match shared {
        Shared::Memory => vec![memory(); tasks],
        _ => (0..tasks).map(|_| memory()).collect(),
    };
    (store, memories)
}

async fn turns_at_once(shared: Shared, on_busy: OnBusy, answered: Tally, time: Time) {
    let (store, memories) = memories(shared, on_busy, TURNS);
    let seen = Seen::default();
    let passing = time.pass();
    let tasks: Vec<_> = memories
        .iter()
        .enumerate()
        .map(|(number, memory)| {
            let place = if number == 1 { Phase::Turn } else { Phase::Round };
            let client = chain(memory, place, &seen);
            spawn(async move {
                let turn = client.prompt().user(said_in(number)).conversation(key()).turn(turn_id(number));
                turn.call().await.map(|response| response.text()).map_err(|error| error.kind())
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    let mut failed = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Ok(text) => {
                assert_eq!(text, format!("Done: {}", said_in(number)));
                acknowledged.push(number);
            }
            Err(kind) => failed.push(kind),
        }
    }
    time.stop();
    passing.await.unwrap();
    check_outcomes(shared, on_busy, &acknowledged, &failed);
    answered.add(acknowledged.len());
    check(&store, &acknowledged, &seen).await;
}

fn check_outcomes(shared: Shared, on_busy: OnBusy, acknowledged: &[usize], failed: &[ErrorKind]) {
    let is_due = |kind: &ErrorKind| match kind {
        ErrorKind::ConversationBusy => on_busy == OnBusy::Reject,
        ErrorKind::Cancelled => on_busy == OnBusy::InterruptPrevious,
        ErrorKind::Fenced => shared != Shared::Memory || on_busy == OnBusy::InterruptPrevious,
        ErrorKind::StoreConflict { .. } | ErrorKind::NotPersisted => shared != Shared::Memory,
        _ => false,
    };
    assert!(failed.iter().all(is_due), "{failed:?}");
    if shared == Shared::Memory {
        assert!(!acknowledged.is_empty(), "somebody is answered: {failed:?}");
    }
    if shared == Shared::Memory && on_busy == OnBusy::Queue {
        assert_eq!(failed, [], "all of those that wait are answered");
    }
}

/// Explores concurrent turns, of which at least `percent` in a hundred must be answered over all schedules.
fn explore_turns(shared: Shared, on_busy: OnBusy, percent: usize) {
    let (what, answered) = (format!("{shared:?}, {on_busy:?}"), Tally::default());
    let counted = answered.clone();
    let tried = explore(&what, move |time| turns_at_once(shared, on_busy, answered.clone(), time));
    counted.expect(percent, tried * TURNS, &what);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_one_process_that_reject() {
    explore_turns(Shared::Memory, OnBusy::Reject, 30);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_one_process_that_queue() {
    explore_turns(Shared::Memory, OnBusy::Queue, 95);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_one_process_that_interrupt() {
    explore_turns(Shared::Memory, OnBusy::InterruptPrevious, 30);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_processes_with_leases_that_reject() {
    explore_turns(Shared::Leases, OnBusy::Reject, 30);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_processes_with_leases_that_queue() {
    explore_turns(Shared::Leases, OnBusy::Queue, 95);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_processes_with_leases_that_interrupt() {
    explore_turns(Shared::Leases, OnBusy::InterruptPrevious, 30);
}

#[test]
fn law_m1_m3_m6_o6_t5_turns_of_processes_without_coordination() {
    explore_turns(Shared::Store, OnBusy::Reject, 30);
}
