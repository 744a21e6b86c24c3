use advisor_core::{Delta, DeltaKind, Text, Usage};

use super::places::{Place, PlaceKind};
use super::scan::{self, Digits, Scanned};
use crate::wire::{CountOf, TokenCounts};

/// An event with gaps.
pub(super) struct Shape {
    /// Up to the first gap.
    head: Box<[u8]>,
    /// Each gap, and what follows it up to the next.
    gaps: Box<[(PlaceKind, Box<[u8]>)]>,
    /// What the event said that this was learned from.
    said: Delta,
    /// Its token counts; boxed, because most shapes have none.
    counts: Option<Box<TokenCounts>>,
}

/// What is read of an event beside its text.
#[derive(Default)]
pub(super) struct Reading {
    /// The token counts in its gaps.
    pub(super) counts: Counts,
    /// Its text without escapes.
    unescaped: String,
}

/// Token counts, each in the place of its [`CountOf`]. What a server reports beside them is made of them only when somebody is
/// told: with counts on every event that is half the cost of reading one.
pub(super) type Counts = [Digits; CountOf::ALL];

impl Shape {
    /// The shape of an event in those places in which others differ; `None` if it would not read its own event.
    pub(super) fn new(
        event: &str,
        places: &[Place],
        said: Delta,
        counts: Option<TokenCounts>,
    ) -> Option<Self> {
        let open = || places.iter().filter(|place| place.differs);
        let starts = open().map(|place| place.start).chain([event.len()]);
        let head = event.get(..starts.clone().next()?)?.as_bytes().into();
        let gaps = open()
            .zip(starts.skip(1))
            .map(|(place, next)| Some((place.kind, event.get(place.end..next)?.as_bytes().into())));
        let gaps = gaps.collect::<Option<_>>()?;
        let shape = Self { head, gaps, said, counts: counts.map(Box::new) };
        let mut reading = Reading::default();
        let (text, rest) = shape.read(event.as_bytes(), &mut reading)?;
        let reads_itself = rest.is_empty()
            && shape.saying(text) == shape.said
            && shape.usage(&reading.counts) == counts.and_then(TokenCounts::to_usage);
        reads_itself.then_some(shape)
    }

    /// What is said by the event that begins these bytes if it has this shape, and what follows it.
    #[inline(always)]
    pub(super) fn read<'a>(&self, bytes: &'a [u8], reading: &mut Reading) -> Option<(Text, &'a [u8])> {
        let mut rest = bytes.strip_prefix(&*self.head)?;
        let mut said = None;
        for (kind, literal) in &self.gaps {
            let gap = if *kind == PlaceKind::Said {
                said.insert(scan::string(rest)?).bytes
            } else {
                read_other(*kind, rest, &mut reading.counts)?
            };
            rest = rest.get(gap.len()..)?.strip_prefix(&**literal)?;
        }
        Some((text_of(&said?, &mut reading.unescaped)?, rest))
    }

    /// Whether events of this shape report token counts.
    #[inline(always)]
    pub(super) fn has_counts(&self) -> bool {
        self.counts.is_some()
    }

    /// What an event of this shape reports that has these counts in its gaps.
    pub(super) fn usage(&self, counts: &Counts) -> Option<Usage> {
        let mut all = **self.counts.as_ref()?;
        for (kind, _) in &self.gaps {
            if let PlaceKind::Count(count) = *kind
                && let Some(digits) = counts.get(count as usize)
            {
                all.set(count, digits.value());
            }
        }
        all.to_usage()
    }

    /// The delta of an event of this shape that says this.
    #[inline(always)]
    pub(super) fn saying(&self, text: Text) -> Delta {
        let kind = match &self.said.kind {
            DeltaKind::Text(_) => DeltaKind::Text(text),
            DeltaKind::Reasoning(_) => DeltaKind::Reasoning(text),
            DeltaKind::Refusal(_) => DeltaKind::Refusal(text),
            DeltaKind::Arguments { index, .. } => DeltaKind::Arguments { index: *index, text },
            other => with_arguments(other, text),
        };
        Delta::from(kind).in_choice(self.said.choice)
    }
}

/// What a string says; `None` if it is empty, which says nothing, or no UTF-8.
#[inline]
fn text_of(string: &Scanned<'_>, unescaped: &mut String) -> Option<Text> {
    let text = str::from_utf8(string.bytes).ok().filter(|text| !text.is_empty())?;
    if string.escaped {
        scan::unescape(text, unescaped);
        return Some(unescaped.as_str().into());
    }
    Some(text.into())
}

/// What stands in a gap that says nothing; a token count is noted.
#[inline]
fn read_other<'a>(kind: PlaceKind, bytes: &'a [u8], counts: &mut Counts) -> Option<&'a [u8]> {
    match kind {
        PlaceKind::Said | PlaceKind::Word => {
            let word = scan::string(bytes)?;
            (word.ascii || str::from_utf8(word.bytes).is_ok()).then_some(word.bytes)
        }
        PlaceKind::Number => scan::number(bytes),
        PlaceKind::Count(count) => {
            let (gap, digits) = scan::count(bytes)?;
            *counts.get_mut(count as usize)? = digits;
            Some(gap)
        }
    }
}

/// The same fragment of a call with other arguments.
#[cold]
fn with_arguments(kind: &DeltaKind, arguments: Text) -> DeltaKind {
    let mut kind = kind.clone();
    if let DeltaKind::ToolCalls(fragments) = &mut kind
        && let [fragment] = fragments.as_mut_slice()
    {
        fragment.arguments_delta = Some(arguments);
    }
    kind
}
