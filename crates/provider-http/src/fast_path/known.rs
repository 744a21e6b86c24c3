use std::collections::VecDeque;

use advisor_core::{Delta, Text};

use super::joined::JoinedData;
use super::places::{Place, PlaceKind};
use super::template::Template;

/// A template, and the event from which it was learned.
pub(super) struct Known {
    pub(super) template: Template,
    pub(super) number: u64,
    pub(super) name: Option<String>,
    pub(super) event: String,
    pub(super) places: Vec<Place>,
    /// The last matching event with token counts that were not taken yet.
    pub(super) counted: Vec<u8>,
    /// The position of `counted` among the events of other templates.
    pub(super) counted_at: u64,
}

impl Known {
    /// Appends the delta of an event with this text, after the data that ends before it.
    #[inline(always)]
    pub(super) fn push_delta(&self, text: Text, joined: &mut JoinedData, deltas: &mut VecDeque<Delta>) {
        if self.template.data.is_some() || !joined.is_empty() {
            deltas.extend(join(joined, self, &text));
        }
        deltas.push_back(self.template.delta_with(text));
    }

    /// Stores an event with token counts.
    #[inline]
    pub(super) fn count(&mut self, json: &[u8]) {
        self.counted.clear();
        self.counted.extend_from_slice(json);
    }

    /// Checks whether another event differs only in its places.
    pub(super) fn is_like(&self, name: Option<&str>, event: &str, places: &[Place]) -> bool {
        let kinds = |places: &[Place]| places.iter().map(|place| place.kind).collect::<Vec<PlaceKind>>();
        self.name.as_deref() == name
            && self.places.len() == places.len()
            && kinds(&self.places) == kinds(places)
            && literals(&self.event, &self.places).eq(literals(event, places))
    }

    /// Marks the places that differ, and those that were marked before.
    pub(super) fn mark_differences(&self, event: &str, places: &mut [Place]) {
        for (place, known) in places.iter_mut().zip(&self.places) {
            place.differs |= known.differs || place.of(event) != known.of(&self.event);
        }
    }
}

/// Returns the bytes between the places.
fn literals<'a>(event: &'a str, places: &'a [Place]) -> impl Iterator<Item = Option<&'a str>> {
    let starts = std::iter::once(0).chain(places.iter().map(|place| place.end));
    let ends = places.iter().map(|place| place.start).chain([event.len()]);
    starts.zip(ends).map(|(start, end)| event.get(start..end))
}

/// Joins the data of an event with this text. Returns the earlier data if this does not continue it.
#[inline(never)]
fn join(joined: &mut JoinedData, known: &Known, text: &str) -> Option<Delta> {
    if known.template.data.is_none() {
        return joined.end();
    }
    if joined.append(text, known.number) {
        return None;
    }
    let piece = joined.with_text(known.template.data_delta()?, text);
    joined.add(piece, Some(known.number))
}
