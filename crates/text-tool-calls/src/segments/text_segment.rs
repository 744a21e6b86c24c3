//! `TextSegment`: a segment of text or reasoning.

use advisor_core::Text;

use super::event::{BrokenEnd, SegmentEvent, SegmentType};

/// A segment of text or of reasoning; it starts with its first character.
#[derive(Debug)]
pub(super) struct TextSegment {
    id: Text,
    kind: SegmentType,
    is_open: bool,
}

impl TextSegment {
    pub(super) fn new(id: Text, kind: SegmentType) -> Self {
        Self { id, kind, is_open: false }
    }

    pub(super) fn push(&mut self, text: &str, events: &mut Vec<SegmentEvent>) {
        if text.is_empty() {
            return;
        }
        if !self.is_open {
            self.is_open = true;
            events.push(SegmentEvent::start(&self.id, self.kind));
        }
        events.push(SegmentEvent::content(&self.id, text));
    }

    pub(super) fn end(self, broken: Option<BrokenEnd>, events: &mut Vec<SegmentEvent>) {
        if self.is_open {
            let end = SegmentEvent::end(&self.id);
            events.push(match broken {
                Some(broken) => end.with_broken_end(broken),
                None => end,
            });
        }
    }
}
