//! An ordered record of events.

mod advisor;
mod chunks;
mod json;
mod model;
mod out_of_order;
mod passing;
mod pattern;

pub use advisor::JournalAdvisor;
pub use model::JournalModel;
pub use out_of_order::OutOfOrder;

use pattern::matches;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// The event in words, from the general to the specific: `store.append assistant r1`.
    pub label: String,
    /// The time since the journal began, in milliseconds; `None` if the journal has no [times](Journal::timed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// Further details for a failed check; `null` if there are none. Checks ignore them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

/// An ordered record of events, shared by all parts of a test.
///
/// Clones share one record and may be used from any thread. All events of a journal have one order: that of the
/// calls of [`record`](Self::record). A failed check panics (or returns [`OutOfOrder`]) with the whole
/// timeline, in which the events concerned are marked.
///
/// # Patterns
///
/// The checks name events by a pattern over the label: `*` matches any characters, also none, and everything
/// else matches itself. `tool.start c1` is exactly that event, `tool.start*` every event that begins so, `* r1`
/// every event that ends so.
///
/// # Example
///
/// ```
/// use advisor_testkit::Journal;
///
/// let journal = Journal::new();
/// let in_the_store = journal.clone();
/// in_the_store.record("store.append assistant r1");
/// journal.record("tool.start c1");
/// journal.record("tool.start c2");
///
/// journal.assert_happens_before("store.append assistant r1", "tool.start*");
/// journal.assert_order(&["store.append*", "tool.start c1", "tool.start c2"]);
/// ```
///
/// Its JSON form is documented in `docs/json.md` of the repository: the version of the form, then the events.
#[derive(Clone, Debug)]
pub struct Journal {
    events: Arc<watch::Sender<Vec<Event>>>,
    began: Option<Instant>,
}

impl Journal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self { events: Arc::new(watch::Sender::new(Vec::new())), began: None }
    }

    /// Creates an empty journal whose events have the time since now.
    ///
    /// Times differ between two runs, so a journal that is compared with another one has none. The clock is that
    /// of tokio, which a test can pause.
    pub fn timed() -> Self {
        Self { began: Some(Instant::now()), ..Self::new() }
    }

    /// Appends an event.
    pub fn record(&self, label: impl Into<String>) {
        self.record_with(label, Value::Null);
    }

    /// Appends an event with fields, which the timeline shows.
    ///
    /// ```
    /// # use advisor_testkit::Journal;
    /// # use serde_json::json;
    /// let journal = Journal::new();
    /// journal.record_with("tool.end c1", json!({"bytes": 12}));
    /// assert!(journal.to_string().contains(r#"{"bytes":12}"#));
    /// ```
    pub fn record_with(&self, label: impl Into<String>, fields: Value) {
        let at_ms = self.began.map(|began| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let event = Event { label: label.into(), at_ms, fields };
        self.events.send_modify(|events| events.push(event));
    }

    /// Returns all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }

    /// Returns the labels of all events so far, for a comparison with a whole run.
    pub fn labels(&self) -> Vec<String> {
        let events = self.events.borrow();
        events.iter().map(|event| event.label.clone()).collect()
    }

    /// Returns the number of events that match.
    pub fn count(&self, pattern: &str) -> usize {
        self.places(pattern).len()
    }

    /// Waits until a matching event has been recorded, and returns the first one. The future can be dropped at
    /// any time.
    pub async fn recorded(&self, pattern: &str) -> Event {
        let mut changes = self.events.subscribe();
        loop {
            let found =
                changes.borrow_and_update().iter().find(|event| matches(pattern, &event.label)).cloned();
            match found {
                Some(event) => return event,
                // The sender lives in `self`, so the channel cannot close while we wait.
                None => drop(changes.changed().await),
            }
        }
    }

    /// Checks that **every** event that matches `earlier` precedes **every** event that matches `later`.
    ///
    /// # Errors
    ///
    /// Two such events are in the other order, one event matches both, or a pattern matches nothing. A check of
    /// an event that never happened proves nothing.
    pub fn happens_before(&self, earlier: &str, later: &str) -> Result<(), OutOfOrder> {
        let before = self.places(earlier);
        let after = self.places(later);
        let nothing = |pattern| format!("nothing that matches `{pattern}` was recorded");
        let problem = if before.is_empty() {
            nothing(earlier)
        } else if after.is_empty() {
            nothing(later)
        } else if before.last() < after.first() {
            return Ok(());
        } else {
            format!("not every `{earlier}` comes before every `{later}`")
        };
        Err(self.out_of_order(problem, [(earlier, before), (later, after)]))
    }

    /// Checks that the patterns match a subsequence of the events: one event each, in this order, with any
    /// others in between.
    ///
    /// Each pattern takes the first matching event after that of the previous pattern. Later matches are
    /// ignored.
    ///
    /// # Errors
    ///
    /// No event after those of the earlier patterns matches a pattern.
    pub fn in_order(&self, patterns: &[&str]) -> Result<(), OutOfOrder> {
        let mut marks: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut next = 0;
        for &pattern in patterns {
            let places = self.places(pattern);
            let Some(&place) = places.iter().find(|&&place| place >= next) else {
                let problem = match marks.last() {
                    Some((previous, _)) if !places.is_empty() => {
                        format!("`{pattern}` comes only before `{previous}`, not after it")
                    }
                    Some((previous, _)) => {
                        format!("nothing that matches `{pattern}` comes after `{previous}`")
                    }
                    None => format!("nothing that matches `{pattern}` was recorded"),
                };
                marks.push((pattern, places));
                return Err(self.out_of_order(problem, marks));
            };
            marks.push((pattern, vec![place]));
            next = place + 1;
        }
        Ok(())
    }

    /// Asserts [`happens_before`](Self::happens_before).
    ///
    /// # Panics
    ///
    /// When the check fails, with the timeline.
    #[track_caller]
    pub fn assert_happens_before(&self, earlier: &str, later: &str) {
        require(self.happens_before(earlier, later));
    }

    /// Asserts [`in_order`](Self::in_order).
    ///
    /// # Panics
    ///
    /// When the check fails, with the timeline.
    #[track_caller]
    pub fn assert_order(&self, patterns: &[&str]) {
        require(self.in_order(patterns));
    }

    /// Asserts that exactly `count` events match; 0 means that the event never happened.
    ///
    /// # Panics
    ///
    /// When there are more or fewer, with the timeline.
    #[track_caller]
    pub fn assert_count(&self, pattern: &str, count: usize) {
        let places = self.places(pattern);
        if places.len() != count {
            let problem = format!("`{pattern}` was recorded {} times instead of {count}", places.len());
            require(Err(self.out_of_order(problem, [(pattern, places)])));
        }
    }

    fn places(&self, pattern: &str) -> Vec<usize> {
        let events = self.events.borrow();
        let matching = events.iter().enumerate();
        matching.filter(|(_, event)| matches(pattern, &event.label)).map(|(place, _)| place).collect()
    }

    fn out_of_order<'a>(
        &self,
        problem: String,
        marks: impl IntoIterator<Item = (&'a str, Vec<usize>)>,
    ) -> OutOfOrder {
        OutOfOrder::new(problem, &self.events.borrow(), marks)
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the timeline: one numbered line for each event.
impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        out_of_order::write_timeline(f, &self.events.borrow(), &[])
    }
}

#[allow(
    clippy::panic,
    reason = "an assertion in a test ends the test; the checks without a panic are there, too"
)]
#[track_caller]
fn require(outcome: Result<(), OutOfOrder>) {
    if let Err(out_of_order) = outcome {
        panic!("{out_of_order}");
    }
}

#[cfg(test)]
mod tests;
