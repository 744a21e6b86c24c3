//! Events that look like one before, read without parsing their JSON.
//!
//! A server writes all events of an answer alike: they differ in the next piece of the text and in little else. So a [`Shape`] is
//! learned from an event that was parsed, and says where such differences may stand. An event whose other bytes are the same ones
//! is valid JSON of the same structure if what stands in those places is a valid string or number, and means the same. Whatever
//! is not certain is no match, and is parsed.
//!
//! What this buys is in `docs/decisions/events-alike.md`. Nearly every event goes this way: that it is inlined to the end saves
//! 39 instructions of 1,034 in a turn.

mod places;
mod scan;
mod shape;

use std::fmt;

use advisor_core::{Delta, DeltaKind, Text, Usage};

use crate::wire::TokenCounts;
use places::{Place, places_of};
use shape::{Counts, Reading, Shape};

/// Shapes that are kept at a time: parallel answers and calls may take turns.
const MOST: usize = 8;
/// The longest event that is learned from, in bytes: what is kept of an answer's events is bounded by that.
const LONGEST: usize = 16 << 10;
/// Learning costs about as much as parsing, so it must be earned: each event that looks like one before earns one.
const CREDIT: u8 = 24;
const PRICE: u8 = 2;
/// After so many events that were not learned from, because too few look alike, no more are compared.
const MOST_UNLEARNED: u8 = 64;

/// The shapes of the events of one answer.
pub(crate) struct Shapes {
    /// The one that was met last comes first.
    known: Vec<Known>,
    credit: u8,
    unlearned: u8,
    reading: Reading,
    /// The counts of the last event, which had the first shape, where nobody was told of them.
    untold: Option<Counts>,
    /// What was reported before them, and nobody was told.
    usage: Option<Usage>,
}

/// A shape, and the event that it was learned from.
struct Known {
    shape: Shape,
    event: String,
    places: Vec<Place>,
}

impl Shapes {
    pub(crate) fn new() -> Self {
        Self {
            known: Vec::new(),
            credit: CREDIT,
            unlearned: 0,
            reading: Reading::default(),
            untold: None,
            usage: None,
        }
    }

    /// For answers in which what an event says depends on the events before it: nothing is learned.
    pub(crate) fn none() -> Self {
        Self { credit: 0, ..Self::new() }
    }

    /// The text of the event that begins these bytes, if it looks like one before, and what follows it. If what follows is
    /// right, the event is to be [taken](Self::take).
    #[inline(always)]
    pub(crate) fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<(Text, &'a [u8])> {
        let said = match self.known.first()?.shape.read(bytes, &mut self.reading) {
            Some(said) => said,
            None => self.read_others(bytes)?,
        };
        self.credit = (self.credit + 1).min(CREDIT);
        Some(said)
    }

    /// Takes in the event that was read last, and gives its delta. Its token counts are kept: they may change with every
    /// event, and the last ones count.
    #[inline(always)]
    pub(crate) fn take(&mut self, text: Text) -> Option<Delta> {
        let shape = &self.known.first()?.shape;
        if shape.has_counts() {
            self.untold = Some(self.reading.counts);
        }
        Some(shape.saying(text))
    }

    #[cold]
    fn read_others<'a>(&mut self, bytes: &'a [u8]) -> Option<(Text, &'a [u8])> {
        let mut others = self.known.iter().enumerate().skip(1);
        let (at, said) =
            others.find_map(|(at, known)| Some((at, known.shape.read(bytes, &mut self.reading)?)))?;
        self.note_usage();
        self.known.get_mut(..=at)?.rotate_right(1);
        Some(said)
    }

    /// Of what is reported the last value counts, and not every shape reports everything.
    fn note_usage(&mut self) {
        if let Some(counts) = self.untold.take()
            && let Some(usage) = self.known.first().and_then(|known| known.shape.usage(&counts))
        {
            self.usage.get_or_insert_default().merge(&usage);
        }
    }

    fn note_unlearned(&mut self) {
        self.unlearned = self.unlearned.saturating_add(1);
        if self.unlearned >= MOST_UNLEARNED {
            self.known.clear();
        }
    }

    /// The token counts that were kept, once.
    pub(crate) fn take_usage(&mut self) -> Option<Usage> {
        self.note_usage();
        self.usage.take()
    }

    /// Learns from an event that said this.
    pub(crate) fn learn(&mut self, event: &str, delta: &Delta, counts: Option<TokenCounts>) {
        if !says_something(&delta.kind) {
            return;
        }
        let Some(credit) = self.credit.checked_sub(PRICE) else { return self.note_unlearned() };
        // Between the lines of an event there may be others, such as comments.
        if event.len() > LONGEST || event.contains('\n') {
            return;
        }
        self.credit = credit;
        let Some(mut places) = places_of(event, &delta.kind) else { return };
        let alike = self.known.iter().position(|known| known.is_like(event, &places));
        if let Some(known) = alike.and_then(|at| self.known.get(at)) {
            known.mark_what_differs(event, &mut places);
        }
        let Some(shape) = Shape::new(event, &places, delta.clone(), counts) else { return };
        let learned = Known { shape, event: event.to_owned(), places };
        match alike {
            Some(at) => drop(self.known.remove(at)),
            None => self.known.truncate(MOST - 1),
        }
        self.known.insert(0, learned);
    }
}

/// Without what the answer says.
impl fmt::Debug for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shapes").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Known {
    /// Whether another event is the same but for what stands in its places.
    fn is_like(&self, event: &str, places: &[Place]) -> bool {
        let kinds = |places: &[Place]| places.iter().map(|place| place.kind).collect::<Vec<_>>();
        kinds(&self.places) == kinds(places)
            && literals(&self.event, &self.places).eq(literals(event, places))
    }

    /// A place stays open that was open before; one where something else stands now is opened.
    fn mark_what_differs(&self, event: &str, places: &mut [Place]) {
        for (place, known) in places.iter_mut().zip(&self.places) {
            place.differs |= known.differs || place.of(event) != known.of(&self.event);
        }
    }
}

/// Whether there is a text, so that there may be another one in its place.
fn says_something(kind: &DeltaKind) -> bool {
    match kind {
        DeltaKind::Text(text)
        | DeltaKind::Reasoning(text)
        | DeltaKind::Refusal(text)
        | DeltaKind::Arguments { text, .. } => !text.is_empty(),
        DeltaKind::ToolCalls(fragments) => fragments
            .iter()
            .any(|fragment| fragment.arguments_delta.as_ref().is_some_and(|text| !text.is_empty())),
        _ => false,
    }
}

/// What stands between the places.
fn literals<'a>(event: &'a str, places: &'a [Place]) -> impl Iterator<Item = Option<&'a str>> {
    let starts = std::iter::once(0).chain(places.iter().map(|place| place.end));
    let ends = places.iter().map(|place| place.start).chain([event.len()]);
    starts.zip(ends).map(|(start, end)| event.get(start..end))
}
