//! Learning of templates.

use advisor_core::{Delta, ToolCallDelta};

use super::known::Known;
use super::places::places_of;
use super::said::Said;
use super::template::Template;
use super::{FastPath, Framing};

/// The most templates kept. Parallel answers and calls may alternate.
const MOST: usize = 8;
/// The most bytes of an event from which a template is learned. It bounds the memory of an answer's templates.
const LONGEST: usize = 16 << 10;
/// The initial and largest budget. Learning costs about as much as parsing; each matching event adds one.
pub(super) const CREDIT: u8 = 24;
const PRICE: u8 = 2;
/// The number of events without learning after which it stops for good.
const MOST_UNLEARNED: u8 = 64;
/// The most beginnings of calls kept. Only an event that repeats one is learned.
const MOST_STARTS: usize = 4;

impl FastPath {
    /// Learns a template from an event and its deltas.
    pub(super) fn learn<'a>(
        &mut self,
        name: Option<&str>,
        event: &str,
        deltas: impl Iterator<Item = &'a Delta>,
    ) {
        let Some(said) = Said::from_deltas(deltas) else { return };
        if said.data.is_some_and(|data| !self.joined.joins_only(&data.value, said.text)) {
            return;
        }
        if !said.start().is_none_or(|start| self.is_repeated(start)) {
            return;
        }
        let Some(credit) = self.credit.checked_sub(PRICE) else { return self.note_unlearned() };
        // Other lines, such as comments, may stand between the lines of a server-sent event.
        if event.len() > LONGEST || (self.framing == Framing::Sse && event.contains('\n')) {
            return;
        }
        self.credit = credit;
        let Some(mut places) = places_of(event, self.fields, said.text) else { return };
        let alike = self.known.iter().position(|known| known.is_like(name, event, &places));
        if let Some(known) = alike.and_then(|at| self.known.get(at)) {
            known.mark_differences(event, &mut places);
        }
        let frame = self.frame(name);
        let Some(template) = Template::new(&frame, event, &places, said) else { return };
        self.left = self.take_counts();
        match alike {
            Some(at) => drop(self.known.remove(at)),
            None => self.known.truncate(MOST - 1),
        }
        self.next += 1;
        self.known.insert(
            0,
            Known {
                template,
                number: self.next,
                name: name.map(str::to_owned),
                event: event.to_owned(),
                places,
                counted: Vec::new(),
                counted_at: 0,
            },
        );
    }

    /// Checks whether an earlier call began with the same fragment. Nearly none does.
    fn is_repeated(&mut self, start: ToolCallDelta) -> bool {
        if self.starts.contains(&start) {
            return true;
        }
        self.starts.truncate(MOST_STARTS - 1);
        self.starts.push_front(start);
        false
    }

    fn note_unlearned(&mut self) {
        self.unlearned = self.unlearned.saturating_add(1);
        if self.unlearned >= MOST_UNLEARNED {
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
