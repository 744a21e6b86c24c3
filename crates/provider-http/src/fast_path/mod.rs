//! Events that look like one before, read without parsing their JSON.
//!
//! A server writes all events of an answer alike: they differ in the next piece of the text and in little else. [`FastPath`] learns
//! a template from an event and the deltas that a converter made of it, and a table of [`Field`]s says what a difference means. An
//! event whose other bytes are the same is valid JSON of the same structure if a valid string or number stands in each gap.
//! Whatever is not certain does not fit, and is parsed.
//!
//! What this buys is in `docs/decisions/events-alike.md`.

mod fields;
mod framing;
mod joined;
mod known;
mod learn;
mod places;
mod said;
mod scan;
mod template;

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{Delta, DeltaKind, ToolCallDelta};

pub use fields::Field;
pub use framing::Framing;
use framing::read_framed;
use joined::JoinedData;
use known::Known;
use learn::CREDIT;
use template::Frame;

/// Decodes events of one answer that look like one before.
///
/// The deltas of all other events come by it, too ([`parsed`](Self::parsed)), so that it can learn, and join the data that rides on
/// reasoning.
///
/// # Ordering
/// Deltas come out in the order of their events. Token counts of decoded events are kept back: take them with
/// [`take_counts`](Self::take_counts) before anything else is said. So is data that rides on reasoning: see
/// [`end_data`](Self::end_data).
///
/// # Errors
/// None. What does not fit is left for a parser.
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
    /// The one that was met last comes first.
    known: Vec<Known>,
    learns: bool,
    credit: u8,
    unlearned: u8,
    starts: VecDeque<ToolCallDelta>,
    joined: JoinedData,
    /// Numbers templates, and events in the order of their counts.
    next: u64,
    /// Events with token counts whose templates are gone.
    left: Vec<String>,
    /// Room for a text without its escapes.
    unescaped: String,
}

/// How far [`FastPath::decode`] came.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// How many bytes the events take.
    pub bytes: usize,
    /// How many events they are.
    pub events: u64,
}

impl FastPath {
    /// A fast path for an answer in a format of which these fields are read.
    #[must_use]
    pub fn new(framing: Framing, fields: &'static Field) -> Self {
        Self {
            framing,
            fields,
            known: Vec::new(),
            learns: true,
            credit: CREDIT,
            unlearned: 0,
            starts: VecDeque::new(),
            joined: JoinedData::new(fields),
            next: 0,
            left: Vec::new(),
            unescaped: String::new(),
        }
    }

    /// Learns nothing any more, and forgets what it knows: for answers in which an event may mean something else each time.
    pub fn stop_learning(&mut self) {
        self.left = self.take_counts();
        self.known.clear();
        self.learns = false;
    }

    /// Whether there is a template that an event may fit.
    #[must_use]
    #[inline]
    pub fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Decodes events that begin these bytes, until one does not fit or `deltas` has `most`. None is longer than `longest` bytes.
    ///
    /// Events must begin at the first byte, with nothing before them.
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
        while let Some(known) = self.known.first_mut() {
            while deltas.len() < most
                && let Some((text, behind)) =
                    read_framed(&known.template, rest, self.framing, &mut self.unescaped)
            {
                let length = rest.len() - behind.len();
                if length > longest {
                    break;
                }
                if known.template.has_counts {
                    let json = known.template.frame()..length - self.framing.end().len();
                    known.count(rest.get(json).unwrap_or_default());
                }
                known.say(text, &mut self.joined, deltas);
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

    /// Decodes an event whose frame was taken off; false if it does not fit.
    pub fn decode_data(&mut self, name: Option<&str>, data: &str, deltas: &mut VecDeque<Delta>) -> bool {
        let fits = |known: &Known, unescaped: &mut String| {
            let (text, rest) = known.template.read(data.as_bytes(), Frame::Gone, unescaped)?;
            (rest.is_empty() && known.name.as_deref() == name).then_some(text)
        };
        let mut all = self.known.iter().enumerate();
        let found = all.find_map(|(at, known)| Some((at, fits(known, &mut self.unescaped)?)));
        let Some((at, text)) = found else { return false };
        if at > 0 {
            self.put_first(at);
        }
        let Some(known) = self.known.first_mut() else { return false };
        if known.template.has_counts {
            known.count(data.as_bytes());
        }
        known.say(text, &mut self.joined, deltas);
        self.earn(1);
        true
    }

    /// Puts the template first that fits the event at the beginning of these bytes. Returns false if none does, or if the
    /// event is longer than `longest`.
    #[cold]
    fn find_other(&mut self, bytes: &[u8], longest: usize) -> bool {
        let mut others = self.known.iter().enumerate().skip(1);
        let fits = |known: &Known, unescaped: &mut String| {
            read_framed(&known.template, bytes, self.framing, unescaped)
                .is_some_and(|(_, behind)| bytes.len() - behind.len() <= longest)
        };
        let Some((at, _)) = others.find(|(_, known)| fits(known, &mut self.unescaped)) else { return false };
        self.put_first(at);
        true
    }

    fn earn(&mut self, events: u64) {
        let earned = u8::try_from(events).unwrap_or(CREDIT);
        self.credit = self.credit.saturating_add(earned).min(CREDIT);
    }

    fn put_first(&mut self, at: usize) {
        if let Some(first) = self.known.first_mut() {
            first.counted_at = self.next;
            self.next += 1;
        }
        if let Some(known) = self.known.get_mut(..=at) {
            known.rotate_right(1);
        }
    }

    /// Takes in an event that was parsed: `deltas` holds its deltas from number `new` on.
    ///
    /// Data that rides on reasoning is taken out of them. It comes back before the next delta that does not continue it; only
    /// reasoning with more of the data, and token counts, overtake it. The event's JSON must be
    /// valid; `name` is that of a server-sent event.
    pub fn parsed(&mut self, name: Option<&str>, json: &str, deltas: &mut VecDeque<Delta>, new: usize) {
        if self.learns {
            self.learn(name, json, deltas.range(new..));
        }
        self.join_parsed(deltas, new);
    }

    /// As [`parsed`](Self::parsed), without learning from it: for events whose JSON is not certain.
    pub fn join_parsed(&mut self, deltas: &mut VecDeque<Delta>, new: usize) {
        let is_data = |delta: &Delta| matches!(delta.kind, DeltaKind::ReasoningData(_));
        if self.joined.is_empty() && !deltas.range(new..).any(is_data) {
            return;
        }
        let mut said = deltas.split_off(new).into_iter().peekable();
        while let Some(delta) = said.next() {
            match &delta.kind {
                DeltaKind::ReasoningData(_) => deltas.extend(self.joined.add(delta, None)),
                DeltaKind::Usage(_) => deltas.push_back(delta),
                DeltaKind::Reasoning(_) => {
                    let data = said.next_if(|next| is_data(next) && is_beside(next, &delta));
                    deltas.extend(match data {
                        Some(data) => self.joined.add(data, None),
                        None => self.joined.end(),
                    });
                    deltas.push_back(delta);
                }
                _ => {
                    deltas.extend(self.joined.end());
                    deltas.push_back(delta);
                }
            }
        }
    }

    /// Ends the data that rides on reasoning, and appends it: before the answer ends, or fails.
    pub fn end_data(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.extend(self.joined.end());
    }

    /// Takes the last events with token counts that were decoded, in their order: of those of one look the last one.
    ///
    /// A converter gives their counts, as [`DeltaKind::Usage`].
    pub fn take_counts(&mut self) -> Vec<String> {
        let mut events = std::mem::take(&mut self.left);
        if self.known.is_empty() || self.known.iter().all(|known| known.counted.is_empty()) {
            return events;
        }
        if let Some(first) = self.known.first_mut() {
            first.counted_at = self.next;
        }
        let mut counted: Vec<_> = self.known.iter_mut().filter(|known| !known.counted.is_empty()).collect();
        counted.sort_by_key(|known| known.counted_at);
        let bytes = counted.into_iter().map(|known| std::mem::take(&mut known.counted));
        events.extend(bytes.filter_map(|event| String::from_utf8(event).ok()));
        events
    }
}

/// Whether two deltas belong to the same block.
fn is_beside(one: &Delta, other: &Delta) -> bool {
    (one.choice, one.block) == (other.choice, other.block)
}

/// Without what the answer says.
impl fmt::Debug for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastPath").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
