//! Processes that stand still at a point, past their lease, and wake up when another one has gone on.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;

use crate::chain::{Scenario, Where};
use crate::child::Report;
use crate::conversation::{Conversation, block_on, points, side_by_side};
use crate::places::Place;
use crate::turn::Stop;

#[test]
fn law_m3_k4_a_process_that_wakes_up_leaves_no_trace_in_a_file() {
    // A file hands out no rights: the version says that another one has gone on.
    sleep_at_every_point("a file", Some(Place::file()), "StoreConflict");
}

#[test]
fn law_m3_k4_a_process_that_wakes_up_leaves_no_trace_in_postgres() {
    sleep_at_every_point("PostgreSQL", Place::postgres(), "Fenced");
}

#[test]
fn law_m3_k4_a_process_that_wakes_up_leaves_no_trace_in_redis() {
    sleep_at_every_point("Redis", Place::redis(), "Fenced");
}

/// A point at which a process falls asleep.
#[derive(Debug, Clone)]
struct Sleep {
    scenario: Scenario,
    memory: Where,
    point: usize,
    #[allow(dead_code, reason = "it is shown when something fails")]
    at: String,
}

fn sleep_at_every_point(what: &str, place: Option<Place>, refusal: &str) {
    let Some(place) = place else { return };
    let turns = [Scenario::Plain, Scenario::Rounds, Scenario::Direct]
        .into_iter()
        .zip(Where::BOTH.into_iter().cycle());
    let turns = turns.map(|(scenario, memory)| points(&place, scenario, memory));
    let sleeps: Vec<_> = turns
        .flat_map(|turn| {
            let (scenario, memory) = (turn.scenario, turn.memory);
            let places = turn.places.into_iter().enumerate();
            places.map(move |(point, at)| Sleep { scenario, memory, point, at })
        })
        .collect();
    let outcomes = Mutex::new(BTreeMap::<String, usize>::new());
    side_by_side(&sleeps, |nth, sleep| {
        let outcome = wake_up(&place, nth, sleep);
        *outcomes.lock().unwrap().entry(outcome).or_default() += 1;
    });
    let outcomes = outcomes.into_inner().unwrap();
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {} sleepers, and what became of them: {outcomes:?}",
        sleeps.len()
    );
    let known = |outcome: &str| outcome == refusal || outcome == "Completed";
    assert!(outcomes.keys().all(|outcome| known(outcome)), "{outcomes:?}");
    assert!(outcomes[refusal] > sleeps.len() / 2, "{outcomes:?}");
    block_on(place.remove());
}

/// A process falls asleep, another one runs the next turn, and the first one wakes up. Gives what it comes to.
fn wake_up(place: &Place, nth: usize, sleep: &Sleep) -> String {
    let mut conversation = Conversation::new(place, format!("s{nth}"), sleep.scenario, sleep.memory);
    let mut child = conversation.begin(0, Some(Stop { point: sleep.point, stands: true }));
    assert!(conversation.hear_until_stopped(0, &mut child));
    block_on(conversation.go_on(1, None));
    let before = block_on(conversation.check());
    child.go(1);
    let mut outcome = String::from("Completed");
    while let Some(report) = child.next() {
        match report {
            Report::Failed { kind, .. } => outcome = kind.split(' ').next().unwrap().to_owned(),
            report => conversation.witness.hear(0, report),
        }
    }
    assert!(child.ended_well());
    let after = block_on(conversation.check());
    assert!(outcome == "Completed" || after == before, "{outcome}, and it has written");
    outcome
}
