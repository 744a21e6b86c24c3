//! Decodes events that match an earlier one, without parsing their JSON.
//!
//! The events of an answer are nearly equal: they differ in the next piece of the text and in little else.
//! [`FastPath`] learns a template from an event and the deltas that a converter made of it. A table of [`Field`]s
//! determines the meaning of a difference. An event with the same fixed bytes is valid JSON of the same structure if
//! each gap holds a valid string or number. An event in doubt does not match, and is parsed.
//!
//! Without it, a chunk of plain text costs 9,700 instructions more; without `inline(always)` on the path of a match, 39.

mod event_content;
mod fields;
mod framing;
mod joined;
mod learn;
mod learned_template;
mod scan;
mod slots;
mod template;

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{Delta, ToolCallDelta};

pub use fields::Field;
pub use framing::Framing;
use framing::read_framed;
use joined::JoinedData;
use learn::FULL_BUDGET;
use learned_template::LearnedTemplate;
use template::Frame;

/// Decodes events of one answer that match an earlier one.
///
/// The caller reports the deltas of all other events ([`parsed`](Self::parsed)). From them it learns, and joins
/// the data attached to reasoning.
///
/// # Ordering
/// Deltas are returned in the order of their events. Token counts of decoded events are held back: call
/// [`take_counts`](Self::take_counts) before any other event is read. Data attached to reasoning is held back,
/// too: see [`end_data`](Self::end_data).
///
/// # Errors
/// None. An event that does not match is left for a parser.
///
/// # Example
/// ```
/// use std::collections::VecDeque;
/// use advisor_core::Delta;
/// use provider_http::fast_path::{FastPath, Field, Framing};
///
/// const EVENT: Field = Field::Object(&[("say", Field::Text)]);
/// let mut fast = FastPath::new(Framing::Lines, &EVENT);
/// let mut deltas = VecDeque::from([Delta::text("Hel")]);
/// fast.parsed(None, r#"{"say":"Hel","n":1}"#, &mut deltas, 0);
/// deltas.clear();
///
/// let body = b"{\"say\":\"lo\",\"n\":1}\n{\"other\":true}\n";
/// let decoded = fast.decode(body, 1 << 20, 32, &mut deltas);
/// assert_eq!((decoded.bytes, decoded.events), (19, 1));
/// assert_eq!(deltas, [Delta::text("lo")]);
/// ```
pub struct FastPath {
    framing: Framing,
    fields: &'static Field,
    /// The most recently matched template comes first.
    templates: Vec<LearnedTemplate>,
    /// Whether it still learns.
    learns: bool,
    /// The budget for learning. A learned event costs some, a matching one adds one.
    budget: u8,
    /// The number of parsed events from which nothing was learned because the budget was spent.
    skipped: u8,
    /// The beginnings of the last calls, the latest first.
    call_starts: VecDeque<ToolCallDelta>,
    /// The data attached to reasoning that is held back.
    joined: JoinedData,
    /// The next number, for templates and for the order of events with counts.
    next: u64,
    /// Events with token counts whose templates were removed, until they are taken.
    counts_of_removed: Vec<String>,
    /// A buffer for a text without its escapes.
    unescaped: String,
}

/// The progress of [`FastPath::decode`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// The number of bytes of the decoded events.
    pub bytes: usize,
    /// The number of decoded events.
    pub events: u64,
}

impl FastPath {
    /// Creates a fast path for one answer in a format that reads these fields.
    #[must_use]
    pub fn new(framing: Framing, fields: &'static Field) -> Self {
        Self {
            framing,
            fields,
            templates: Vec::new(),
            learns: true,
            budget: FULL_BUDGET,
            skipped: 0,
            call_starts: VecDeque::new(),
            joined: JoinedData::new(fields),
            next: 0,
            counts_of_removed: Vec::new(),
            unescaped: String::new(),
        }
    }

    /// Expects the elements of an array, which may contain line feeds, in place of the framing of the format.
    pub(crate) fn expect_array(&mut self) {
        self.framing = Framing::Array;
    }

    /// Stops learning and forgets all templates. Needed for answers in which equal events differ in meaning.
    pub fn stop_learning(&mut self) {
        self.forget();
        self.learns = false;
    }

    /// Forgets all templates. Needed where events of the same form begin to differ in meaning from earlier ones,
    /// such as where a block ends.
    pub fn forget(&mut self) {
        if self.has_templates() {
            self.counts_of_removed = self.take_counts();
            self.templates.clear();
        }
    }

    /// Checks whether there is a template that an event may match.
    #[must_use]
    #[inline]
    pub fn has_templates(&self) -> bool {
        !self.templates.is_empty()
    }

    /// Decodes events from the beginning of `bytes`, until one does not match, is longer than `longest` bytes, or
    /// `deltas` has `most` entries.
    ///
    /// The first event must begin at the first byte.
    #[inline]
    pub fn decode(
        &mut self,
        bytes: &[u8],
        longest: usize,
        most: usize,
        deltas: &mut VecDeque<Delta>,
    ) -> Decoded {
        let mut events = 0;
        let mut rest = bytes;
        while let Some(learned) = self.templates.first_mut() {
            while deltas.len() < most
                && let Some((text, after_json, behind)) =
                    read_framed(&learned.template, rest, self.framing, &mut self.unescaped)
            {
                let length = rest.len() - behind.len();
                if length > longest {
                    break;
                }
                if learned.template.has_counts {
                    let json = learned.template.frame()..rest.len() - after_json.len();
                    learned.count(rest.get(json).unwrap_or_default());
                }
                learned.push_delta(text, &mut self.joined, deltas);
                rest = behind;
                events += 1;
            }
            if deltas.len() >= most || rest.is_empty() || !self.find_other(rest, longest) {
                break;
            }
        }
        if events > 0 {
            self.earn(events);
        }
        Decoded { bytes: bytes.len() - rest.len(), events }
    }

    /// Decodes an event without its frame. Returns false if it does not match.
    pub fn decode_data(&mut self, name: Option<&str>, data: &str, deltas: &mut VecDeque<Delta>) -> bool {
        let fits = |learned: &LearnedTemplate, unescaped: &mut String| {
            let (text, rest) = learned.template.read(data.as_bytes(), Frame::Gone, unescaped)?;
            (rest.is_empty() && learned.name.as_deref() == name).then_some(text)
        };
        let mut all = self.templates.iter().enumerate();
        let found = all.find_map(|(at, learned)| Some((at, fits(learned, &mut self.unescaped)?)));
        let Some((at, text)) = found else { return false };
        if at > 0 {
            self.put_first(at);
        }
        let Some(learned) = self.templates.first_mut() else { return false };
        if learned.template.has_counts {
            learned.count(data.as_bytes());
        }
        learned.push_delta(text, &mut self.joined, deltas);
        self.earn(1);
        true
    }

    /// Moves the template that matches the event at the beginning of these bytes to the front. Returns false if
    /// none does, or if the event is longer than `longest`.
    #[cold]
    fn find_other(&mut self, bytes: &[u8], longest: usize) -> bool {
        let mut others = self.templates.iter().enumerate().skip(1);
        let fits = |learned: &LearnedTemplate, unescaped: &mut String| {
            read_framed(&learned.template, bytes, self.framing, unescaped)
                .is_some_and(|(_, _, behind)| bytes.len() - behind.len() <= longest)
        };
        let Some((at, _)) = others.find(|(_, learned)| fits(learned, &mut self.unescaped)) else {
            return false;
        };
        self.put_first(at);
        true
    }

    fn earn(&mut self, events: u64) {
        let earned = u8::try_from(events).unwrap_or(FULL_BUDGET);
        self.budget = self.budget.saturating_add(earned).min(FULL_BUDGET);
    }

    fn put_first(&mut self, at: usize) {
        if let Some(first) = self.templates.first_mut() {
            first.counted_at = self.next;
            self.next += 1;
        }
        if let Some(templates) = self.templates.get_mut(..=at) {
            templates.rotate_right(1);
        }
    }

    /// Learns from a parsed event, whose deltas are those in `deltas` from index `new` on.
    ///
    /// Removes data attached to reasoning from them. It returns before the next delta that does not continue it;
    /// only token counts, and reasoning with more of the data, pass it. `json` must be valid; `name` is that of a
    /// server-sent event.
    pub fn parsed(&mut self, name: Option<&str>, json: &str, deltas: &mut VecDeque<Delta>, new: usize) {
        if self.learns {
            self.learn(name, json, deltas.range(new..));
        }
        self.join_parsed(deltas, new);
    }

    /// Takes the decoded events with token counts, in their order; of each template only the last one.
    ///
    /// A converter reads their counts, as [`DeltaKind::Usage`](advisor_core::DeltaKind::Usage).
    pub fn take_counts(&mut self) -> Vec<String> {
        let mut events = std::mem::take(&mut self.counts_of_removed);
        if self.templates.is_empty() || self.templates.iter().all(|learned| learned.counted.is_empty()) {
            return events;
        }
        if let Some(first) = self.templates.first_mut() {
            first.counted_at = self.next;
        }
        let mut counted: Vec<_> =
            self.templates.iter_mut().filter(|learned| !learned.counted.is_empty()).collect();
        counted.sort_by_key(|learned| learned.counted_at);
        let bytes = counted.into_iter().map(|learned| std::mem::take(&mut learned.counted));
        events.extend(bytes.filter_map(|event| String::from_utf8(event).ok()));
        events
    }
}

/// Shows no content of the answer.
impl fmt::Debug for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastPath").field("templates", &self.templates.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
