use advisor_core::{Delta, DeltaKind, Text, Usage};

use super::places::{Place, PlaceKind};
use super::scan;
use crate::wire::TokenCounts;

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

/// What is kept from one event to the next.
#[derive(Default)]
pub(super) struct Reading {
    /// The token counts that nobody was told yet.
    pub(super) usage: Option<Usage>,
    /// Those of the event that is read.
    counts: TokenCounts,
    /// Its text without escapes.
    unescaped: String,
}

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
            && shape.take(text, &mut reading) == shape.said
            && reading.usage == counts.and_then(TokenCounts::to_usage);
        reads_itself.then_some(shape)
    }

    /// What is said by the event that begins these bytes if it has this shape, and what follows it.
    #[inline(always)]
    pub(super) fn read<'a>(&self, bytes: &'a [u8], reading: &mut Reading) -> Option<(Text, &'a [u8])> {
        let mut rest = bytes.strip_prefix(&*self.head)?;
        let mut said = None;
        if let Some(counts) = &self.counts {
            reading.counts = **counts;
        }
        for (kind, literal) in &self.gaps {
            let gap = if *kind == PlaceKind::Said {
                let (gap, escaped) = scan::string(rest)?;
                said = Some(text_of(gap, escaped, &mut reading.unescaped)?);
                gap
            } else {
                read_other(*kind, rest, &mut reading.counts)?
            };
            rest = rest.get(gap.len()..)?.strip_prefix(&**literal)?;
        }
        Some((said?, rest))
    }

    /// The delta of the event of this shape that was read last and said this. Its token counts are kept.
    #[inline(always)]
    pub(super) fn take(&self, text: Text, reading: &mut Reading) -> Delta {
        if self.counts.is_some()
            && let Some(usage) = reading.counts.to_usage()
        {
            reading.usage.get_or_insert_default().replace_with(&usage);
        }
        self.saying(text)
    }

    #[inline(always)]
    fn saying(&self, text: Text) -> Delta {
        let kind = match &self.said.kind {
            DeltaKind::Text(_) => DeltaKind::Text(text),
            DeltaKind::Reasoning(_) => DeltaKind::Reasoning(text),
            DeltaKind::Refusal(_) => DeltaKind::Refusal(text),
            other => with_arguments(other, text),
        };
        Delta::from(kind).in_choice(self.said.choice)
    }
}

/// What a string says; `None` if it is empty, which says nothing, or no UTF-8.
#[inline]
fn text_of(string: &[u8], escaped: bool, unescaped: &mut String) -> Option<Text> {
    let text = str::from_utf8(string).ok().filter(|text| !text.is_empty())?;
    if escaped {
        scan::unescape(text, unescaped);
        return Some(unescaped.as_str().into());
    }
    Some(text.into())
}

/// What stands in a gap that says nothing; a token count is noted.
fn read_other<'a>(kind: PlaceKind, bytes: &'a [u8], counts: &mut TokenCounts) -> Option<&'a [u8]> {
    let PlaceKind::Count(count) = kind else {
        return match kind {
            PlaceKind::Number => scan::number(bytes),
            _ => scan::string(bytes).map(|(gap, _)| gap).filter(|gap| str::from_utf8(gap).is_ok()),
        };
    };
    let gap = scan::number(bytes)?;
    counts.set(count, scan::value(gap)?);
    Some(gap)
}

/// The same fragment of a call with other arguments.
#[cold]
fn with_arguments(kind: &DeltaKind, arguments: Text) -> DeltaKind {
    if let DeltaKind::Arguments { index, .. } = kind {
        return DeltaKind::Arguments { index: *index, text: arguments };
    }
    let mut kind = kind.clone();
    if let DeltaKind::ToolCalls(fragments) = &mut kind
        && let [fragment] = fragments.as_mut_slice()
    {
        fragment.arguments_delta = Some(arguments);
    }
    kind
}
