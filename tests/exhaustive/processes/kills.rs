//! Processes that are killed at every point of a turn, by SIGKILL.

use std::fmt;
use std::io::Write as _;
use std::time::Instant;

use advisor_tests::prelude::*;

use crate::processes::conversation::{Conversation, block_on, every_turn, side_by_side};
use crate::processes::places::Place;
use crate::processes::plan::{Case, cases};
use crate::processes::turn::Stop;

/// The default number of killed processes per place; `ADVISOR_KILLS` overrides it.
const KILLS: usize = 200;

/// The number of kills during appends from which on some must come before, and some after the effect.
const ENOUGH: usize = 100;

#[test]
fn law_k4_m1_m3_m6_o6_t5_file_conversation_survives_kill_anywhere() {
    killed_at_every_point("a file", Some(Place::file()));
}

#[test]
fn law_k4_m1_m3_m6_o6_t5_postgres_conversation_survives_kill_anywhere() {
    killed_at_every_point("PostgreSQL", Place::postgres());
}

#[test]
fn law_k4_m1_m3_m6_o6_t5_redis_conversation_survives_kill_anywhere() {
    killed_at_every_point("Redis", Place::redis());
}

fn killed_at_every_point(what: &str, place: Option<Place>) {
    let Some(place) = place else { return };
    let begin = Instant::now();
    let wanted = std::env::var("ADVISOR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let turns = every_turn(&place);
    let cases = cases(&turns, wanted);
    let count = Count::default();
    side_by_side(&cases, |nth, case| run(&place, nth, case, &count));
    let points: usize = turns.iter().map(|turn| turn.places.len()).sum();
    let say = format!(
        "{what}: {count} in {} conversations; {} turns have {points} points; {:?}",
        cases.len(),
        turns.len(),
        begin.elapsed()
    );
    let _ = writeln!(std::io::stderr(), "{say}");
    let [in_flight, applied] = [&count.in_flight, &count.applied].map(|count| count.load(Ordering::Relaxed));
    if in_flight >= ENOUGH {
        let some = in_flight / 10;
        assert!(
            some < applied && applied < in_flight - some,
            "kills come on both sides of an append's effect: {count}"
        );
    }
    let kills = count.kills.into_inner();
    assert!(kills * 10 >= wanted * 9, "{kills} kills of {wanted}");
    block_on(place.remove());
}

/// Kills the processes of a conversation by its case, and continues.
fn run(place: &Place, nth: usize, case: &Case, count: &Count) {
    let mut conversation = Conversation::new(place, format!("c{nth}"), case.scenario, case.memory);
    let mut turn = 0;
    for (process, kill) in case.kills.iter().enumerate() {
        turn += usize::from(process > 0 && !kill.again);
        let killed = conversation.kill(process, turn, kill.stop);
        let log = block_on(conversation.check());
        if let Some(before) = killed {
            count.kill(kill.stop, before, conversation.witness.acknowledged(), log);
        }
    }
    block_on(conversation.go_on(case.kills.len(), case.resumes.then_some(turn)));
}

/// Counts of killed processes.
#[derive(Default)]
struct Count {
    kills: AtomicUsize,
    /// Of those, the ones that were killed during an append.
    in_flight: AtomicUsize,
    /// Of those, the ones whose append was made.
    applied: AtomicUsize,
    /// Of those, the ones that had not received the acknowledgement.
    unknown: AtomicUsize,
}

impl Count {
    fn kill(&self, stop: Stop, before: usize, acknowledged: usize, stored: usize) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(usize::from(!stop.stands), Ordering::Relaxed);
        let is_applied = !stop.stands && stored > before;
        self.applied.fetch_add(usize::from(is_applied), Ordering::Relaxed);
        let is_unknown = !stop.stands && stored > acknowledged;
        self.unknown.fetch_add(usize::from(is_unknown), Ordering::Relaxed);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kills, in_flight, applied, unknown] =
            [&self.kills, &self.in_flight, &self.applied, &self.unknown]
                .map(|count| count.load(Ordering::Relaxed));
        write!(f, "{kills} processes were killed ({in_flight} while they appended, of which {applied} had")?;
        write!(f, " appended and {unknown} of those had not been told)")
    }
}
