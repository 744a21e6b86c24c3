//! Learning of templates.

use advisor_core::{Delta, ToolCallDelta};

use super::event_content::EventContent;
use super::learned_template::LearnedTemplate;
use super::slots::slots_of;
use super::template::Template;
use super::{FastPath, Framing};

/// The most templates kept. Parallel answers and calls may alternate.
const MOST: usize = 8;
/// The most bytes of an event from which a template is learned. It bounds the memory of an answer's templates.
const LONGEST: usize = 16 << 10;
/// The initial and largest budget. Learning costs about as much as parsing; each matching event adds one.
pub(super) const FULL_BUDGET: u8 = 24;
/// The budget that learning from one event costs.
const COST: u8 = 2;
/// The number of events without learning after which it stops permanently.
const MOST_SKIPPED: u8 = 64;
/// The most beginnings of calls kept. Only an event that repeats one is learned.
const MOST_CALL_STARTS: usize = 4;

impl FastPath {
    /// Learns a template from an event and its deltas.
    pub(super) fn learn<'a>(
        &mut self,
        name: Option<&str>,
        event: &str,
        deltas: impl Iterator<Item = &'a Delta>,
    ) {
        let Some(content) = EventContent::from_deltas(deltas) else { return };
        if content.data.is_some_and(|data| !self.joined.joins_only(&data.value, content.text)) {
            return;
        }
        if !content.start().is_none_or(|start| self.is_repeated(start)) {
            return;
        }
        let Some(budget) = self.budget.checked_sub(COST) else { return self.note_skipped() };
        // Other lines, such as comments, may stand between the lines of a server-sent event.
        if event.len() > LONGEST || (self.framing == Framing::Sse && event.contains('\n')) {
            return;
        }
        self.budget = budget;
        let Some(mut slots) = slots_of(event, self.fields, content.text) else { return };
        let known_at = self.templates.iter().position(|learned| learned.is_like(name, event, &slots));
        if let Some(learned) = known_at.and_then(|at| self.templates.get(at)) {
            learned.mark_differences(event, &mut slots);
        }
        let frame = self.frame(name);
        let Some(template) = Template::new(&frame, event, &slots, content) else { return };
        self.counts_of_removed = self.take_counts();
        match known_at {
            Some(at) => drop(self.templates.remove(at)),
            None => self.templates.truncate(MOST - 1),
        }
        self.next += 1;
        self.templates.insert(0, LearnedTemplate::new(template, self.next, name, event, slots));
    }

    /// Checks whether an earlier call began with the same fragment. Nearly none does.
    fn is_repeated(&mut self, start: ToolCallDelta) -> bool {
        if self.call_starts.contains(&start) {
            return true;
        }
        self.call_starts.truncate(MOST_CALL_STARTS - 1);
        self.call_starts.push_front(start);
        false
    }

    fn note_skipped(&mut self) {
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped >= MOST_SKIPPED {
            self.stop_learning();
        }
    }

    fn frame(&self, name: Option<&str>) -> String {
        match (self.framing, name) {
            (Framing::Sse, None) => "data: ".to_owned(),
            (Framing::Sse, Some(name)) => format!("event: {name}\ndata: "),
            (Framing::Lines | Framing::Array, _) => String::new(),
        }
    }
}
