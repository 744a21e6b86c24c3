//! The meaning of an event of a journal, by its label.

use advisor_testkit::Event;
use serde_json::Value;

use crate::printable::brief;

/// The most characters of an event that are shown.
const LENGTH: usize = 160;

/// A participant of a turn. The order is that of their lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lane {
    /// The reader of the turn.
    Caller,
    Advisor(String),
    Model,
    Store,
    Tools,
    /// Events with other labels.
    Other,
}

/// The effect of an event on its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The lane begins to work.
    Enters,
    /// It ends its work.
    Ends,
    /// It stops before its end, or fails.
    Fails,
    /// Anything else.
    Happens,
}

/// An event as it is shown. Its text has no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at_ms: Option<u64>,
    pub(super) lane: Lane,
    pub(super) step: Step,
    pub(super) text: String,
}

impl Lane {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Caller => "caller",
            Self::Advisor(name) => name,
            Self::Model => "model",
            Self::Store => "store",
            Self::Tools => "tools",
            Self::Other => "other",
        }
    }
}

impl Moment {
    /// Reads an event. An unknown label is shown as it is.
    pub(super) fn new(event: &Event) -> Self {
        let (word, rest) = event.label.split_once(' ').unwrap_or((&event.label, ""));
        let (lane, step, text) = advisor(word, rest)
            .or_else(|| inner(word, rest, &event.fields))
            .or_else(|| caller(word, rest, &event.fields))
            .unwrap_or_else(|| (Lane::Other, Step::Happens, with_fields(&event.label, &event.fields)));
        Self { at_ms: event.at_ms, lane, step, text: brief(&text, LENGTH) }
    }
}

/// Reads an event of an advisor: its name, and perhaps its round.
fn advisor(word: &str, rest: &str) -> Option<(Lane, Step, String)> {
    let (step, text) = match word {
        "advisor.enter" => (Step::Enters, "enters"),
        "advisor.first_chunk" => (Step::Happens, "passes the first chunk"),
        "advisor.completed" => (Step::Ends, "completes"),
        "advisor.drop" => (Step::Fails, "stops"),
        _ => return None,
    };
    let is_round = |round: &str| round.strip_prefix('r').is_some_and(|number| number.parse::<u32>().is_ok());
    let (name, round) = match rest.rsplit_once(' ').filter(|(_, round)| is_round(round)) {
        Some((name, round)) => (name, format!(" ({round})")),
        None => (rest, String::new()),
    };
    Some((Lane::Advisor(brief(name, LENGTH)), step, format!("{text}{round}")))
}

/// Reads an event of the model, the store or the tools.
fn inner(word: &str, rest: &str, fields: &Value) -> Option<(Lane, Step, String)> {
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (lane, step, text) = match word {
        "model.ask" => (Lane::Model, Step::Enters, format!("is asked ({rest})")),
        "model.first_chunk" => (Lane::Model, Step::Happens, format!("sends the first chunk ({rest})")),
        "model.end" => (Lane::Model, Step::Ends, format!("ends its answer ({rest})")),
        "model.drop" => (Lane::Model, Step::Fails, format!("stops ({rest})")),
        "stored" => (Lane::Store, Step::Happens, format!("stored {rest}")),
        "tool.start" => {
            let call = format!("{rest} starts: {} {}", field("name"), field("arguments"));
            (Lane::Tools, Step::Enters, call)
        }
        "tool.progress" => (Lane::Tools, Step::Happens, format!("{rest} reports progress")),
        "tool.end" if fields.get("is_error") == Some(&Value::Bool(true)) => {
            (Lane::Tools, Step::Fails, format!("{rest} fails: {}", field("name")))
        }
        "tool.end" => (Lane::Tools, Step::Ends, format!("{rest} ends: {}", field("name"))),
        "tool.not_started" => {
            let call = format!("{rest} is not started, {}: {}", field("reason"), field("name"));
            (Lane::Tools, Step::Happens, call)
        }
        _ => return None,
    };
    Some((lane, step, text))
}

/// Reads an event of the caller.
fn caller(word: &str, rest: &str, fields: &Value) -> Option<(Lane, Step, String)> {
    let count = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => "unknown".to_owned(),
        Some(count) => count.to_string(),
    };
    let (step, text) = match word {
        "turn.start" => (Step::Enters, format!("asks (turn {rest})")),
        "turn.completed" => (Step::Ends, "sees the end of the turn".to_owned()),
        "turn.failed" => (Step::Fails, format!("sees the turn fail: {rest}")),
        "round.completed" => (Step::Happens, format!("sees the end of {rest}")),
        "round.restarted" => (Step::Happens, format!("sees {rest} start over")),
        "usage" => {
            let (input, output) = (count("input_tokens"), count("output_tokens"));
            (Step::Happens, format!("sees usage of {rest}: {input} in, {output} out"))
        }
        _ => return None,
    };
    Some((Lane::Caller, step, text))
}

fn with_fields(label: &str, fields: &Value) -> String {
    if fields.is_null() { label.to_owned() } else { format!("{label} {fields}") }
}
