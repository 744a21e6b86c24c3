//! `TurnJournal`: the events of one turn, in their order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use advisor_core::{JSON_VERSION, Turn};
use serde::Serialize;
use serde_json::{Value, json};

/// The events of one journal. Later ones are not kept, and [`CUT`] stands in their place.
const EVENTS: usize = 4_096;

/// The label of the last event of a journal that has no later ones.
const CUT: &str = "journal.cut";

/// The events of one turn, in their order. Cheap to clone.
///
/// Its JSON form and its labels are those of the testkit's journal, see `docs/json.md`.
#[derive(Clone)]
pub(crate) struct TurnJournal(Arc<Shared>);

struct Shared {
    begin: Instant,
    events: Mutex<Vec<Event>>,
}

#[derive(Serialize)]
struct Event {
    label: String,
    /// The milliseconds since the turn began.
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    fields: Value,
}

impl TurnJournal {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { begin: Instant::now(), events: Mutex::default() }))
    }

    /// Returns the journal of a turn, if it has one.
    pub(crate) fn from_turn(turn: &Turn) -> Option<Self> {
        turn.extensions().get()
    }

    /// Appends an event.
    pub(crate) fn record(&self, label: impl Into<String>, fields: Value) {
        let mut events = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that later events have later times.
        let at_ms = u64::try_from(self.0.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        match events.len() {
            ..EVENTS => events.push(Event { label: label.into(), at_ms, fields }),
            EVENTS => events.push(Event { label: CUT.into(), at_ms, fields: Value::Null }),
            _ => {}
        }
    }

    /// Returns the events so far, in the JSON form of a journal.
    pub(crate) fn written(&self) -> Value {
        let events = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        json!({"version": JSON_VERSION, "events": *events})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_says_that_it_is_cut() {
        let journal = TurnJournal::new();
        for _ in 0..EVENTS {
            journal.record("model.ask r1", Value::Null);
        }
        assert_eq!(journal.written()["events"].as_array().unwrap().len(), EVENTS);
        for _ in 0..2 {
            journal.record("model.end r1", Value::Null);
        }
        let written = journal.written();
        let events = written["events"].as_array().unwrap();
        assert_eq!((events.len(), &events.last().unwrap()["label"]), (EVENTS + 1, &json!(CUT)));
    }
}
