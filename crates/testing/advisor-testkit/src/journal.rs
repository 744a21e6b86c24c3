//! `Journal`: an ordered record of events, and checks of their order.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// An ordered record of events, shared by all parts of a test.
///
/// An event is a label in words, from the general to the specific: `stored assistant r1`. Clones share one record and may
/// be used from any thread. All events of a journal have one order: that of the calls of [`record`](Self::record). A
/// failed check panics with the whole timeline, in which the events concerned are marked.
///
/// # Patterns
///
/// The checks name events by a pattern over the label: `*` matches any characters, also none, and everything
/// else matches itself. `tool starts c1` is exactly that event, `tool starts*` every event that begins so, `* r1`
/// every event that ends so.
///
/// # Example
///
/// ```
/// use advisor_testkit::Journal;
///
/// let journal = Journal::new();
/// let in_the_store = journal.clone();
/// in_the_store.record("stored assistant r1");
/// journal.record("tool starts c1");
/// journal.record("tool starts c2");
///
/// journal.assert_happens_before("stored assistant r1", "tool starts*");
/// journal.assert_order(&["stored*", "tool starts c1", "tool starts c2"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<watch::Sender<Vec<String>>>);

/// The places of a timeline at which a pattern matches.
type Marks<'a> = [(&'a str, Vec<usize>)];

impl Journal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an event.
    pub fn record(&self, label: impl Into<String>) {
        self.0.send_modify(|labels| labels.push(label.into()));
    }

    /// Returns the labels of all events so far, for a comparison with a whole run.
    pub fn labels(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Returns the number of events that match.
    pub fn count(&self, pattern: &str) -> usize {
        self.places(pattern).len()
    }

    /// Waits until a matching event has been recorded, and returns the first one. The future can be dropped at
    /// any time.
    pub async fn recorded(&self, pattern: &str) -> String {
        let mut changes = self.0.subscribe();
        loop {
            let found = changes.borrow_and_update().iter().find(|label| matches(pattern, label)).cloned();
            match found {
                Some(label) => return label,
                // The sender lives in `self`, so the channel cannot close while we wait.
                None => drop(changes.changed().await),
            }
        }
    }

    /// Checks whether **every** event that matches `earlier` precedes **every** event that matches `later`. It is not so
    /// if one of the patterns matches nothing: a check of an event that never happened proves nothing.
    pub fn happens_before(&self, earlier: &str, later: &str) -> bool {
        let (before, after) = (self.places(earlier), self.places(later));
        !before.is_empty() && !after.is_empty() && before.last() < after.first()
    }

    /// Asserts [`happens_before`](Self::happens_before).
    ///
    /// # Panics
    ///
    /// When the check fails, with the timeline.
    #[track_caller]
    pub fn assert_happens_before(&self, earlier: &str, later: &str) {
        if self.happens_before(earlier, later) {
            return;
        }
        let marks = [earlier, later].map(|pattern| (pattern, self.places(pattern)));
        let problem = match marks.iter().find(|(_, places)| places.is_empty()) {
            Some((absent, _)) => format!("nothing that matches `{absent}` was recorded"),
            None => format!("not every `{earlier}` comes before every `{later}`"),
        };
        self.fail(&problem, &marks);
    }

    /// Asserts that the patterns match a subsequence of the events: one event each, in this order, with any
    /// others in between. Each pattern takes the first matching event after that of the previous pattern.
    ///
    /// # Panics
    ///
    /// When there is no such event, with the timeline.
    #[track_caller]
    pub fn assert_order(&self, patterns: &[&str]) {
        let mut marks: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut next = 0;
        for &pattern in patterns {
            let places = self.places(pattern);
            if let Some(&place) = places.iter().find(|&&place| place >= next) {
                marks.push((pattern, vec![place]));
                next = place + 1;
                continue;
            }
            let problem = match marks.last() {
                Some((previous, _)) => format!("nothing that matches `{pattern}` comes after `{previous}`"),
                None => format!("nothing that matches `{pattern}` was recorded"),
            };
            marks.push((pattern, places));
            self.fail(&problem, &marks);
        }
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
            self.fail(&problem, &[(pattern, places)]);
        }
    }

    fn places(&self, pattern: &str) -> Vec<usize> {
        let labels = self.0.borrow();
        let matching = labels.iter().enumerate().filter(|(_, label)| matches(pattern, label));
        matching.map(|(place, _)| place).collect()
    }

    #[allow(clippy::panic, reason = "an assertion in a test ends the test")]
    #[track_caller]
    fn fail(&self, problem: &str, marks: &Marks<'_>) -> ! {
        panic!("{problem}\n{}", timeline(&self.labels(), marks));
    }
}

/// Writes the timeline: one numbered line for each event.
impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&timeline(&self.labels(), &[]))
    }
}

/// Returns one numbered line for each event, with `>` and the pattern at the marked ones.
fn timeline(labels: &[String], marks: &Marks<'_>) -> String {
    if labels.is_empty() {
        return "  (nothing was recorded)\n".to_owned();
    }
    let line = |(place, label): (usize, &String)| {
        let here = marks.iter().filter(|(_, places)| places.contains(&place));
        let patterns: String = here.map(|(pattern, _)| format!("  <- `{pattern}`")).collect();
        let sign = if patterns.is_empty() { ' ' } else { '>' };
        format!("{sign} {:>4}  {label}{patterns}\n", place + 1)
    };
    labels.iter().enumerate().map(line).collect()
}

/// Checks whether `label` matches `pattern`: `*` matches any characters, everything else matches itself.
fn matches(pattern: &str, label: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let Some(mut rest) = label.strip_prefix(first) else {
        return false;
    };
    let mut parts = others.split('*');
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
