//! The events of a journal in lanes.

use advisor_testkit::Event;

use super::event::{Lane, Moment, Step};
use super::facts::Facts;

/// The most advisors that have their own lane. The size of the output grows with events and lanes.
const MOST_ADVISORS: usize = 40;

/// The events to show, and the lanes in which they are.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The caller, the advisors from the outside in, then the others. Advisors beyond the limit share the last lane.
    pub(super) lanes: Vec<Lane>,
    pub(super) moments: Vec<Moment>,
    /// The number of events that are not shown.
    pub(super) left_out: usize,
    pub(super) facts: Facts,
}

/// The state of a lane at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Idle,
    /// It has entered and not ended.
    Active,
    /// The event is in this lane.
    Event(Step),
}

impl Timeline {
    /// Creates the timeline of the first `most` events.
    pub(super) fn new(events: &[Event], most: usize) -> Self {
        let moments: Vec<_> = events.iter().take(most).map(Moment::new).collect();
        let has = |lane: &Lane| moments.iter().any(|moment| moment.lane == *lane);
        let mut advisors: Vec<Lane> = Vec::new();
        let mut is_over = false;
        for moment in &moments {
            if matches!(moment.lane, Lane::Advisor(_)) && !advisors.contains(&moment.lane) {
                is_over |= advisors.len() == MOST_ADVISORS;
                advisors.extend((!is_over).then(|| moment.lane.clone()));
            }
        }
        let mut lanes: Vec<Lane> = [Lane::Caller].into_iter().filter(has).chain(advisors).collect();
        lanes.extend([Lane::Model, Lane::Store, Lane::Tools].into_iter().filter(has));
        lanes.extend(Some(Lane::Other).filter(|other| is_over || has(other)));
        let left_out = events.len().saturating_sub(moments.len());
        Self { lanes, moments, left_out, facts: Facts::new(events) }
    }

    /// Returns the place of a lane, which is the last one for an advisor without its own.
    pub(super) fn place(&self, lane: &Lane) -> usize {
        let place = self.lanes.iter().position(|other| other == lane);
        place.unwrap_or_else(|| self.lanes.len().saturating_sub(1))
    }

    /// Returns each event with the state of all lanes.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Moment, Vec<Cell>)> {
        // Several tools may run at once.
        let mut running = vec![0_u32; self.lanes.len()];
        self.moments.iter().map(move |moment| {
            let at = self.place(&moment.lane);
            let cells = running.iter().enumerate().map(|(place, count)| match *count {
                _ if place == at => Cell::Event(moment.step),
                0 => Cell::Idle,
                _ => Cell::Active,
            });
            let cells = cells.collect();
            if let Some(count) = running.get_mut(at) {
                *count = match moment.step {
                    Step::Enters => count.saturating_add(1),
                    Step::Ends | Step::Fails => count.saturating_sub(1),
                    Step::Happens => *count,
                };
            }
            (moment, cells)
        })
    }

    /// Returns a note about the events that are not shown, if there are any.
    pub(super) fn note(&self) -> Option<String> {
        (self.left_out > 0)
            .then(|| format!("{} more events are left out; --events N shows more", self.left_out))
    }
}
