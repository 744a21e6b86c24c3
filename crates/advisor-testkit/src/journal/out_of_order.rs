//! The report of a failed check.

use super::Event;
use serde_json::Value;
use std::fmt;

/// The longest timeline that is shown whole. Longer ones show only events near the marked ones.
const SHOWN_WHOLE: usize = 120;
/// The number of events that a long timeline shows before and after a marked one.
const NEAR: usize = 8;

/// The reason why a check of a [`Journal`](super::Journal) failed: one sentence, then the timeline at that
/// moment with the events concerned marked.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfOrder {
    problem: String,
    events: Vec<Event>,
    marks: Vec<Mark>,
}

/// A place in the timeline and the pattern that matches there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    place: usize,
    pattern: String,
}

impl OutOfOrder {
    pub(super) fn new<'a>(
        problem: String,
        events: &[Event],
        marks: impl IntoIterator<Item = (&'a str, Vec<usize>)>,
    ) -> Self {
        let marks = marks.into_iter().flat_map(|(pattern, places)| {
            places.into_iter().map(move |place| Mark { place, pattern: pattern.to_owned() })
        });
        Self { problem, events: events.to_vec(), marks: marks.collect() }
    }

    /// Returns the sentence alone, without the timeline.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl std::error::Error for OutOfOrder {}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.problem)?;
        write_timeline(f, &self.events, &self.marks)
    }
}

/// Writes one numbered line for each event, with `>` and the pattern at the marked ones.
pub(super) fn write_timeline(f: &mut fmt::Formatter<'_>, events: &[Event], marks: &[Mark]) -> fmt::Result {
    if events.is_empty() {
        return writeln!(f, "  (nothing was recorded)");
    }
    let whole = events.len() <= SHOWN_WHOLE || marks.is_empty();
    let mut left_out = 0;
    for (place, event) in events.iter().enumerate() {
        if !whole && !marks.iter().any(|mark| mark.place.abs_diff(place) <= NEAR) {
            left_out += 1;
            continue;
        }
        write_left_out(f, left_out)?;
        left_out = 0;
        let mut patterns = marks.iter().filter(|mark| mark.place == place).peekable();
        let sign = if patterns.peek().is_some() { '>' } else { ' ' };
        write!(f, "{sign} {:>4}  {}", place + 1, event.label)?;
        if event.fields != Value::Null {
            write!(f, "  {}", event.fields)?;
        }
        for mark in patterns {
            write!(f, "  <- `{}`", mark.pattern)?;
        }
        writeln!(f)?;
    }
    write_left_out(f, left_out)
}

fn write_left_out(f: &mut fmt::Formatter<'_>, left_out: usize) -> fmt::Result {
    match left_out {
        0 => Ok(()),
        count => writeln!(f, "        ... {count} more"),
    }
}
