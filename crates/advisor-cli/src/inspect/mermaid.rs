//! A timeline as a sequence diagram of Mermaid.

use std::fmt::Write;

use super::event::{Lane, Step};
use super::timeline::Timeline;

/// The size from which on events are left out. Mermaid refuses diagrams of more than 50,000 characters.
const MOST: usize = 45_000;

/// Renders the diagram. Calls go from a lane to the next one inside it, and completions back.
pub(super) fn render(timeline: &Timeline) -> String {
    let mut out = "sequenceDiagram\n".to_owned();
    for (place, lane) in timeline.lanes.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "    participant L{place} as {}", escaped(lane.name()));
    }
    let mut left_out = timeline.left_out;
    for moment in &timeline.moments {
        if out.len() > MOST {
            left_out += 1;
            continue;
        }
        let at = timeline.place(&moment.lane);
        let time = moment.at_ms.map_or_else(String::new, |ms| format!("{ms} ms: "));
        let text = escaped(&format!("{time}{}", moment.text));
        let is_link = matches!(moment.lane, Lane::Advisor(_) | Lane::Model);
        let _ = match (at.checked_sub(1).filter(|_| is_link), moment.step) {
            (Some(outer), Step::Enters) => writeln!(out, "    L{outer}->>L{at}: {text}"),
            (Some(outer), Step::Ends) => writeln!(out, "    L{at}-->>L{outer}: {text}"),
            (Some(outer), Step::Fails) => writeln!(out, "    L{at}--xL{outer}: {text}"),
            _ => writeln!(out, "    Note over L{at}: {text}"),
        };
    }
    if left_out > 0 && !timeline.lanes.is_empty() {
        let _ = writeln!(out, "    Note over L0: {left_out} more events are left out");
    }
    out
}

/// Escapes the characters that mean something in a diagram, as Mermaid's entities.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '#' | ';' | ':' | '%' | '<' | '>' | '&' | '"' | '\'' | '`' | '{' | '}' | '[' | ']' | '\\' => {
                let _ = write!(escaped, "#{};", u32::from(char));
            }
            char => escaped.push(char),
        }
    }
    escaped
}
