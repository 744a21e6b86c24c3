//! Tests of processes that sleep at a point past their lease, and wake up after another one has continued.

use std::io::Write as _;
use std::ops::Range;

use advisor_tests::prelude::*;

use crate::processes::chain::{Scenario, Where};
use crate::processes::child::Report;
use crate::processes::conversation::{Conversation, block_on, points, side_by_side};
use crate::processes::places::Place;
use crate::processes::turn::Stop;

#[test]
fn law_m3_k4_awakened_process_leaves_no_trace_in_file() {
    // A file hands out no leases: the version says that another one has gone on.
    sleep_at_every_point("a file", Some(Place::file()), "StoreConflict");
}

#[test]
fn law_m3_k4_awakened_process_leaves_no_trace_in_postgres() {
    sleep_at_every_point("PostgreSQL", Place::postgres(), "Fenced");
}

#[test]
fn law_m3_k4_awakened_process_leaves_no_trace_in_redis() {
    sleep_at_every_point("Redis", Place::redis(), "Fenced");
}

/// The outcome of a process that no other one has overtaken.
const COMPLETED: &str = "Completed";

/// A point at which a process falls asleep.
#[derive(Debug, Clone)]
struct Sleep {
    scenario: Scenario,
    memory: Where,
    point: usize,
    at: String,
    /// Whether the turn needs the conversation at the point, so that another turn has to take it over.
    holds: bool,
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
            let holding = holding(&turn.places);
            let places = turn.places.into_iter().enumerate();
            places.map(move |(point, at)| {
                let holds = holding.contains(&point);
                Sleep { scenario, memory, point, at, holds }
            })
        })
        .collect();
    let outcomes = Mutex::new(BTreeMap::<String, usize>::new());
    side_by_side(&sleeps, |nth, sleep| {
        let outcome = wake_up(&place, nth, sleep);
        let expected = if sleep.holds { refusal } else { COMPLETED };
        assert_eq!(outcome, expected, "asleep at point {}, {}", sleep.point, sleep.at);
        *outcomes.lock().unwrap().entry(outcome).or_default() += 1;
    });
    let outcomes = outcomes.into_inner().unwrap();
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {} sleepers, and what became of them: {outcomes:?}",
        sleeps.len()
    );
    block_on(place.remove());
}

/// Returns the points at which a turn needs its conversation: from the grant of its lease, or its first append, to its
/// last append.
fn holding(places: &[String]) -> Range<usize> {
    let first = |name| places.iter().position(|place| place == name);
    let last = |name| places.iter().rposition(|place| place == name);
    let from = first("After(Acquire)").or_else(|| first("After(Append)"));
    from.unwrap()..last("After(Append)").unwrap()
}

/// Puts a process to sleep, runs the next turn in another one, and wakes the first. Returns its outcome.
fn wake_up(place: &Place, nth: usize, sleep: &Sleep) -> String {
    let mut conversation = Conversation::new(place, format!("s{nth}"), sleep.scenario, sleep.memory);
    let mut child =
        conversation.begin(0, Some(Stop { point: sleep.point, stands: true, after: Duration::ZERO }));
    assert!(conversation.hear_until_stopped(0, &mut child));
    block_on(conversation.go_on(1, None));
    let before = block_on(conversation.check());
    child.go(1);
    // One that falls asleep when its reader has been told the end has said so already.
    let mut outcome = conversation.witness.has_completed("t0").then(|| COMPLETED.to_owned());
    while let Some(report) = child.next() {
        match &report {
            Report::Failed { kind, .. } => outcome = kind.split(' ').next().map(str::to_owned),
            Report::Completed { .. } => outcome = Some(COMPLETED.to_owned()),
            _ => {}
        }
        if !matches!(report, Report::Failed { .. }) {
            conversation.witness.hear(0, report);
        }
    }
    assert!(child.ended_well());
    let outcome = outcome.expect("the reader is told how the turn ends");
    let after = block_on(conversation.check());
    assert!(outcome == COMPLETED || after == before, "{outcome}, and it has written");
    outcome
}
