//! `LearnedTemplate`: a template with the event it was learned from and its last token counts.

use std::collections::VecDeque;

use advisor_core::{Delta, Text};

use super::joined::JoinedData;
use super::slots::{SlotKind, ValueSlot};
use super::template::Template;

/// A template, and the event from which it was learned.
pub(super) struct LearnedTemplate {
    pub(super) template: Template,
    /// The number of this template, by which joined data refers to it.
    pub(super) number: u64,
    /// The name of the server-sent event.
    pub(super) name: Option<String>,
    /// The event's JSON.
    pub(super) event: String,
    /// The slots of the event.
    pub(super) slots: Vec<ValueSlot>,
    /// The last matching event with token counts that were not taken yet.
    pub(super) counted: Vec<u8>,
    /// The position of `counted` among the events of other templates.
    pub(super) counted_at: u64,
}

impl LearnedTemplate {
    pub(super) fn new(
        template: Template,
        number: u64,
        name: Option<&str>,
        event: &str,
        slots: Vec<ValueSlot>,
    ) -> Self {
        let (name, event) = (name.map(str::to_owned), event.to_owned());
        Self { template, number, name, event, slots, counted: Vec::new(), counted_at: 0 }
    }

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

    /// Checks whether another event differs only in its slots.
    pub(super) fn is_like(&self, name: Option<&str>, event: &str, slots: &[ValueSlot]) -> bool {
        let kinds = |slots: &[ValueSlot]| slots.iter().map(|slot| slot.kind).collect::<Vec<SlotKind>>();
        self.name.as_deref() == name
            && self.slots.len() == slots.len()
            && kinds(&self.slots) == kinds(slots)
            && literals(&self.event, &self.slots).eq(literals(event, slots))
    }

    /// Marks the slots that differ, and those that were marked before.
    pub(super) fn mark_differences(&self, event: &str, slots: &mut [ValueSlot]) {
        for (slot, own) in slots.iter_mut().zip(&self.slots) {
            slot.differs |= own.differs || slot.of(event) != own.of(&self.event);
        }
    }
}

/// Returns the bytes between the slots.
fn literals<'a>(event: &'a str, slots: &'a [ValueSlot]) -> impl Iterator<Item = Option<&'a str>> {
    let starts = std::iter::once(0).chain(slots.iter().map(|slot| slot.end));
    let ends = slots.iter().map(|slot| slot.start).chain([event.len()]);
    starts.zip(ends).map(|(start, end)| event.get(start..end))
}

/// Joins the data of an event with this text. Returns the earlier data if this does not continue it.
#[inline(never)]
fn join(joined: &mut JoinedData, learned: &LearnedTemplate, text: &str) -> Option<Delta> {
    if learned.template.data.is_none() {
        return joined.end();
    }
    if joined.append(text, learned.number) {
        return None;
    }
    let piece = joined.with_text(learned.template.data_delta()?, text);
    joined.add(piece, Some(learned.number))
}
