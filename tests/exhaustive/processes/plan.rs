//! The plan of the kills.

use std::time::Duration;

use crate::processes::chain::{Scenario, Where};
use crate::processes::turn::Stop;

/// A conversation whose processes are killed one after the other, and which then continues.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) memory: Where,
    pub(crate) kills: Vec<Kill>,
    /// Whether the last turn is submitted again before the conversation continues.
    pub(crate) resumes: bool,
}

/// A process that is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    pub(crate) stop: Stop,
    /// Whether the process runs the turn of the process before it, under its id. Otherwise it runs the next
    /// turn.
    pub(crate) again: bool,
}

/// The points of a turn without a kill.
pub(crate) struct Turn {
    pub(crate) scenario: Scenario,
    pub(crate) memory: Where,
    pub(crate) places: Vec<String>,
}

/// The number of successive kills in one conversation.
const ROW: usize = 24;
/// The delays of a kill after an append is about to begin, in microseconds.
const IN_FLIGHT: [u64; 6] = [0, 1000, 2000, 4000, 8000, 16_000];

impl Turn {
    fn case(&self, kills: Vec<Kill>, resumes: bool) -> Case {
        Case { scenario: self.scenario, memory: self.memory, kills, resumes }
    }

    /// Kills at each point, and then continues, submitted again or not.
    fn at_each_point(&self) -> impl Iterator<Item = Case> {
        let both = [false, true].into_iter();
        let points = move |resumes| (0..self.places.len()).map(move |point| (point, resumes));
        both.flat_map(points).map(|(point, resumes)| self.case(vec![Kill::at(point, false)], resumes))
    }

    /// Killed while the store appends.
    fn in_flight(&self) -> impl Iterator<Item = Case> {
        let places = self.places.iter().enumerate();
        let appends = places.filter(|(_, place)| *place == "Before(Append)");
        appends.flat_map(move |(point, _)| {
            let moments = IN_FLIGHT.into_iter().enumerate();
            moments.map(move |(nth, after)| {
                let stop = Stop { point, stands: false, after: Duration::from_micros(after) };
                self.case(vec![Kill { stop, again: false }], nth % 2 == 1)
            })
        })
    }

    /// Kills at each point, and again at each point of the next or continued turn.
    fn at_each_pair(&self) -> impl Iterator<Item = Case> {
        let points = self.places.len();
        let pairs = (0..points).flat_map(move |first| (0..points).map(move |second| (first, second)));
        pairs.enumerate().map(move |(nth, (first, second))| {
            let again = nth % 3 != 0;
            self.case(vec![Kill::at(first, false), Kill::at(second, again)], nth % 2 == 0)
        })
    }

    /// Killed many times in a row.
    fn in_a_row(&self) -> Case {
        let kills = (0..ROW).map(|nth| Kill::at(nth * 5 % self.places.len(), nth % 3 == 1));
        self.case(kills.collect(), true)
    }
}

impl Kill {
    fn at(point: usize, again: bool) -> Self {
        Self { stop: Stop { point, stands: true, after: Duration::ZERO }, again }
    }
}

/// Returns cases with about `wanted` kills. They are rows, every point of every turn, and appends in flight; if
/// these are too many, an even selection. At least a quarter of the kills are pairs.
pub(crate) fn cases(turns: &[Turn], wanted: usize) -> Vec<Case> {
    let rows = turns.iter().map(Turn::in_a_row);
    let singles = turns.iter().flat_map(|turn| turn.at_each_point().chain(turn.in_flight()));
    let all: Vec<_> = rows.chain(singles).collect();
    let share = all.len() * (wanted - wanted / 4) / kills(&all).max(1);
    let mut cases: Vec<_> = if share < all.len() { spread(all, share).collect() } else { all };
    let left = wanted.saturating_sub(kills(&cases)).max(wanted / 4);
    let pairs = turns.iter().flat_map(Turn::at_each_pair).collect();
    // A pair may come to its end before its second kill.
    cases.extend(spread(pairs, left.div_ceil(2)));
    cases
}

fn kills(cases: &[Case]) -> usize {
    cases.iter().map(|case| case.kills.len()).sum()
}

/// Selects about `wanted` of these, evenly.
fn spread(cases: Vec<Case>, wanted: usize) -> impl Iterator<Item = Case> {
    let step = (cases.len() / wanted.max(1)).max(1);
    let wanted = if wanted == 0 { 0 } else { usize::MAX };
    cases.into_iter().step_by(step).take(wanted)
}
