//! A timeline as text.

use std::fmt::Write;

use super::event::Step;
use super::timeline::{Cell, Timeline};

/// The width of a lane's name in front of an event.
const NAME: usize = 14;

/// Renders a line for each event: its time, a column for each lane, the lane, and the text.
pub(super) fn render(timeline: &Timeline) -> String {
    let mut out = format!("{}\n\n", timeline.facts);
    if timeline.moments.is_empty() {
        out.push_str("The journal has no events.\n");
    }
    for (moment, cells) in timeline.rows() {
        let time = moment.at_ms.map_or_else(String::new, |at| format!("{at} ms"));
        let marks: String = cells.into_iter().map(mark).collect();
        let (lane, text) = (moment.lane.name(), &moment.text);
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{time:>10} {marks} {lane:<NAME$} {text}");
    }
    if let Some(note) = timeline.note() {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

fn mark(cell: Cell) -> &'static str {
    match cell {
        Cell::Idle => " ·",
        Cell::Active => " │",
        Cell::Event(Step::Enters) => " ┬",
        Cell::Event(Step::Ends) => " ┴",
        Cell::Event(Step::Fails) => " ✗",
        Cell::Event(Step::Happens) => " ●",
    }
}
