//! `Template`: fixed bytes with gaps for text, strings, numbers and token counts.

use std::cell::Cell;

use advisor_core::{Delta, DeltaKind, ProviderData, Text};

use super::event_content::{EventContent, with_text};
use super::scan::{self, Scanned};
use super::slots::{SlotKind, ValueSlot};

/// The fixed bytes of events that differ only in the gaps between them.
pub(super) struct Template {
    /// The bytes before the event's JSON, and its JSON up to the first gap.
    head: Box<[u8]>,
    /// The number of bytes of the head before the JSON.
    frame: usize,
    gaps: Box<[Gap]>,
    /// The delta of the event from which this was learned.
    delta: Delta,
    /// The data attached to that delta.
    pub(super) data: Option<Box<ProviderData>>,
    /// Whether the events have token counts.
    pub(super) has_counts: bool,
}

/// A place where events differ.
struct Gap {
    kind: SlotKind,
    /// The bytes up to the next gap.
    after: Box<[u8]>,
    /// The largest token count seen here.
    most: Cell<u64>,
}

/// Whether an event still has its frame around its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    There,
    Gone,
}

impl Template {
    /// Creates the template of an event, with gaps in the slots that differ; `None` if it does not read its own
    /// event.
    pub(super) fn new(
        frame: &str,
        event: &str,
        slots: &[ValueSlot],
        content: EventContent<'_>,
    ) -> Option<Self> {
        let open = || slots.iter().filter(|slot| slot.differs);
        let starts = open().map(|slot| slot.start).chain([event.len()]);
        let head = [frame, event.get(..starts.clone().next()?)?].concat().into_bytes().into();
        let gaps = open().zip(starts.skip(1)).map(|(slot, next)| {
            let after = event.get(slot.end..next)?.as_bytes().into();
            Some(Gap { kind: slot.kind, after, most: Cell::default() })
        });
        let template = Self {
            head,
            frame: frame.len(),
            gaps: gaps.collect::<Option<_>>()?,
            delta: content.delta.clone(),
            data: content.data.cloned().map(Box::new),
            has_counts: content.has_counts || slots.iter().any(|slot| slot.kind == SlotKind::Count),
        };
        let (text, rest) = template.read(event.as_bytes(), Frame::Gone, &mut String::new())?;
        (rest.is_empty() && template.delta_with(text) == *content.delta).then_some(template)
    }

    /// Returns the text of the event that begins these bytes, and the bytes after its JSON; `None` if it does not
    /// match.
    #[inline(always)]
    pub(super) fn read<'a>(
        &self,
        bytes: &'a [u8],
        frame: Frame,
        unescaped: &mut String,
    ) -> Option<(Text, &'a [u8])> {
        let head = match frame {
            Frame::There => &*self.head,
            Frame::Gone => self.head.get(self.frame..)?,
        };
        let mut rest = bytes.strip_prefix(head)?;
        let mut text: Option<Scanned<'_>> = None;
        for gap in &self.gaps {
            let bytes = match gap.kind {
                SlotKind::Text => text.insert(scan::string(rest)?).bytes,
                SlotKind::Spelled => {
                    let spelled = scan::string(rest)?;
                    text.insert(Scanned { escaped: false, ..spelled }).bytes
                }
                SlotKind::TextRepeated => {
                    let repeated = text.as_ref()?.bytes;
                    rest.starts_with(repeated).then_some(repeated)?
                }
                SlotKind::Count => gap.count(rest)?,
                kind => read_other(kind, rest)?,
            };
            rest = rest.get(bytes.len()..)?.strip_prefix(&*gap.after)?;
        }
        Some((text_of(&text?, unescaped)?, rest))
    }

    /// Returns the number of bytes of the frame before the JSON.
    #[inline(always)]
    pub(super) fn frame(&self) -> usize {
        self.frame
    }

    /// Returns the delta of an event with this text.
    #[inline(always)]
    pub(super) fn delta_with(&self, text: Text) -> Delta {
        let kind = match &self.delta.kind {
            DeltaKind::Text(_) => DeltaKind::Text(text),
            DeltaKind::Reasoning(_) => DeltaKind::Reasoning(text),
            DeltaKind::Refusal(_) => DeltaKind::Refusal(text),
            DeltaKind::Arguments { index, .. } => DeltaKind::Arguments { index: *index, text },
            other => with_text(other, text),
        };
        self.in_place(kind)
    }

    /// Returns the data of the event from which this was learned.
    pub(super) fn data_delta(&self) -> Option<Delta> {
        let data = self.data.clone()?;
        Some(self.in_place(DeltaKind::ReasoningData(data)))
    }

    /// Returns a delta of the same block.
    #[inline(always)]
    fn in_place(&self, kind: DeltaKind) -> Delta {
        let mut delta = Delta::from(kind);
        delta.block = self.delta.block;
        delta
    }
}

impl Gap {
    /// Returns the digits of a token count. One that falls is in doubt: of a run of events only the last one's counts
    /// are read, and that must lose none.
    #[inline]
    fn count<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let digits = scan::count(bytes)?;
        // It has fifteen digits at most.
        let count = digits.iter().fold(0, |count, digit| count * 10 + u64::from(digit - b'0'));
        (count >= self.most.get()).then(|| self.most.set(count))?;
        Some(digits)
    }
}

/// Returns the text of a string; `None` if it is empty or not UTF-8.
#[inline]
fn text_of(string: &Scanned<'_>, unescaped: &mut String) -> Option<Text> {
    let text = str::from_utf8(string.bytes).ok().filter(|text| !text.is_empty())?;
    if string.escaped {
        scan::unescape(text, unescaped);
        return Some(unescaped.as_str().into());
    }
    Some(text.into())
}

/// Returns the bytes of a gap that is not read.
#[inline]
fn read_other(kind: SlotKind, bytes: &[u8]) -> Option<&[u8]> {
    match kind {
        SlotKind::Text | SlotKind::Spelled | SlotKind::TextRepeated | SlotKind::String => {
            let word = scan::string(bytes)?;
            (word.ascii || str::from_utf8(word.bytes).is_ok()).then_some(word.bytes)
        }
        SlotKind::Number => scan::number(bytes),
        SlotKind::Count => scan::count(bytes),
        SlotKind::Blanks => bytes.get(..bytes.iter().take_while(|byte| **byte == b' ').count()),
    }
}
