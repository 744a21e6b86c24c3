//! What happened in which order.

mod out_of_order;
mod pattern;

pub use out_of_order::OutOfOrder;

use pattern::matches;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// What happened, as words from the general to the special: `store.append assistant r1`.
    pub label: String,
    /// What else is worth knowing when a check fails; `null` when nothing is. Checks do not look at it.
    pub fields: Value,
}

/// An ordered record of what happened, shared by everything that takes part in a test.
///
/// Clones share one record and may be used from any thread. All events of a journal have one order: that in which
/// [`record`](Self::record) was called. A check that fails panics (or returns [`OutOfOrder`]) with the whole timeline,
/// the events concerned marked.
///
/// # Patterns
///
/// The checks name events by a pattern over the label: `*` stands for any characters, also none, and everything else for itself.
/// `tool.start c1` is exactly that event, `tool.start*` everything that begins so, `* r1` everything that ends so.
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
#[derive(Clone, Debug)]
pub struct Journal {
    events: Arc<watch::Sender<Vec<Event>>>,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        Self { events: Arc::new(watch::Sender::new(Vec::new())) }
    }

    /// Adds an event at the end.
    pub fn record(&self, label: impl Into<String>) {
        self.record_with(label, Value::Null);
    }

    /// Adds an event with fields, which the timeline shows.
    ///
    /// ```
    /// # use advisor_testkit::Journal;
    /// # use serde_json::json;
    /// let journal = Journal::new();
    /// journal.record_with("tool.end c1", json!({"bytes": 12}));
    /// assert!(journal.to_string().contains(r#"{"bytes":12}"#));
    /// ```
    pub fn record_with(&self, label: impl Into<String>, fields: Value) {
        let event = Event { label: label.into(), fields };
        self.events.send_modify(|events| events.push(event));
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }

    /// The labels of all events so far: the short form to compare a whole run with.
    pub fn labels(&self) -> Vec<String> {
        let events = self.events.borrow();
        events.iter().map(|event| event.label.clone()).collect()
    }

    /// How many events match.
    pub fn count(&self, pattern: &str) -> usize {
        self.places(pattern).len()
    }

    /// Waits until an event that matches has been recorded, and returns the first one. Can be dropped at any time.
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
    /// Two such events are the other way round, one event matches both, or nothing matches one of the patterns:
    /// a check about something that never happened proves nothing.
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

    /// Checks that the patterns match a subsequence of the events: one event each, in this order, with any others between.
    ///
    /// Each pattern takes the first event after the previous pattern's that matches. Later matches do no harm.
    ///
    /// # Errors
    ///
    /// A pattern finds no event after those of the patterns before it.
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

    /// [`happens_before`](Self::happens_before), as an assertion.
    ///
    /// # Panics
    ///
    /// When the check fails, with the timeline.
    #[track_caller]
    pub fn assert_happens_before(&self, earlier: &str, later: &str) {
        require(self.happens_before(earlier, later));
    }

    /// [`in_order`](Self::in_order), as an assertion.
    ///
    /// # Panics
    ///
    /// When the check fails, with the timeline.
    #[track_caller]
    pub fn assert_order(&self, patterns: &[&str]) {
        require(self.in_order(patterns));
    }

    /// Asserts that exactly `count` events match; 0 says that something never happened.
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

/// The timeline: one numbered line for each event.
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
