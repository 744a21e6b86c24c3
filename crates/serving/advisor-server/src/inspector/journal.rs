//! `TurnJournal`: the events of one turn, in their order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use advisor_core::{JSON_VERSION, Turn};
use serde_json::{Value, json};

/// The events of one journal. Later ones are not kept, and [`CUT`] stands in their place.
const EVENTS: usize = 4_096;

/// The label of the last event of a journal that has no later ones.
const CUT: &str = "journal.cut";

/// The events of one turn, in their order. Cheap to clone.
///
/// `docs/json.md` describes its JSON form and its labels.
#[derive(Clone)]
pub(crate) struct TurnJournal {
    begin: Instant,
    events: Arc<Mutex<Vec<Value>>>,
}

impl TurnJournal {
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), events: Arc::default() }
    }

    /// Returns the journal of a turn, if it has one.
    pub(crate) fn from_turn(turn: &Turn) -> Option<Self> {
        turn.extensions().get()
    }

    /// Appends an event.
    pub(crate) fn record(&self, label: impl Into<String>, fields: Value) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that later events have later times.
        let at_ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (label, fields) = match events.len() {
            ..EVENTS => (label.into(), fields),
            EVENTS => (CUT.to_owned(), Value::Null),
            _ => return,
        };
        let mut event = json!({"label": label, "at_ms": at_ms});
        if let Some(event) = event.as_object_mut().filter(|_| !fields.is_null()) {
            event.insert("fields".to_owned(), fields);
        }
        events.push(event);
    }

    /// Returns the events so far, in the JSON form of a journal.
    pub(crate) fn written(&self) -> Value {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
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
