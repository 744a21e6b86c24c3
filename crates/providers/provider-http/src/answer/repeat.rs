//! `Repeat`: a shortcut past the reader, for an event that differs from the one before only in its text.

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{Delta, DeltaKind, Text, Usage};

use super::wire_format::{AnswerEvent, WireFormat};
use crate::json::{Json, has_escaped_letter, pass, string, unescaped};

/// The events in a row that were like none before, until no more are looked at: some servers count in each event.
const MOST_MISSES: u8 = 8;

/// The event before, if it gave one piece of text, perhaps with token counts, as nearly all events of an answer do.
///
/// That text is a string in it, or several that are equal. An event with another text there, and the same bytes elsewhere,
/// gives the same delta with the other text, as long as the format [says so](WireFormat::repeat).
#[derive(Default)]
pub(super) struct Repeat {
    /// The piece, if there is one. Its text does not matter.
    piece: Option<Delta>,
    name: Option<String>,
    /// The values that may differ, in their order.
    holes: Vec<Hole>,
    /// The event behind them.
    after: String,
    misses: u8,
}

/// A value that may differ.
struct Hole {
    /// The bytes before it, from the hole before on.
    before: String,
    kind: HoleKind,
}

#[derive(Clone, Copy, PartialEq)]
enum HoleKind {
    Text,
    Usage,
    Ignored,
}

impl Repeat {
    /// Appends the delta of an event like the one before, and its token counts.
    #[inline]
    pub(super) fn read<W: WireFormat>(
        &mut self,
        event: AnswerEvent<'_>,
        format: &mut W,
        deltas: &mut VecDeque<Delta>,
    ) -> Option<()> {
        let piece = self.piece.as_ref()?;
        let (mut rest, mut found, mut usage) = (event.data, None, None);
        for hole in &self.holes {
            rest = rest.strip_prefix(&*hole.before)?;
            match hole.kind {
                HoleKind::Text => {
                    let (text, is_escaped, behind) = string(rest)?;
                    if found.replace((text, is_escaped)).is_some_and(|before| before != (text, is_escaped)) {
                        return None;
                    }
                    rest = behind;
                }
                // Its keys may be spelled otherwise.
                HoleKind::Usage if has_escaped_letter(rest.as_bytes()) => return None,
                HoleKind::Usage => rest = pass(rest, |json| format.usage(json, &mut usage))?,
                HoleKind::Ignored => rest = pass(rest, Json::skip)?,
            }
        }
        if !end_alike(rest, &self.after) || event.name != self.name.as_deref() {
            return None;
        }
        self.misses = 0;
        let (text, is_escaped) = found.filter(|(text, _)| !text.is_empty() && format.repeat(text))?;
        let text = if is_escaped { unescaped(text).collect() } else { text.into() };
        let mut delta = Delta::from(with_text(&piece.kind, text)?);
        delta.block = piece.block;
        deltas.push_back(delta);
        if let Some(usage) = usage {
            deltas.push_back(Delta::usage(usage));
        }
        Some(())
    }

    /// Forgets the event before.
    pub(super) fn forget(&mut self) {
        self.piece = None;
    }

    /// Notes an event that gave only this delta and these token counts.
    pub(super) fn note<W: WireFormat>(
        &mut self,
        event: AnswerEvent<'_>,
        delta: &Delta,
        usage: Option<&Usage>,
        format: &mut W,
    ) {
        self.piece = None;
        if self.misses == MOST_MISSES {
            return;
        }
        // What looks like a number may come from one.
        let is_word =
            |text: &&Text| !text.starts_with(|letter: char| letter == '-' || letter.is_ascii_digit());
        let Some(text) = text_of(&delta.kind).filter(is_word) else { return };
        self.misses += 1;
        let found = self.note_holes(event.data, text, format);
        if found.is_some_and(|found| found.as_ref() == usage) {
            self.name = event.name.map(str::to_owned);
            self.piece = Some(delta.clone());
        }
    }

    /// Returns the token counts; `None` if the event is malformed or has several.
    fn note_holes<W: WireFormat>(
        &mut self,
        event: &str,
        text: &str,
        format: &mut W,
    ) -> Option<Option<Usage>> {
        self.holes.clear();
        let (mut rest, mut from, mut usage, mut counts) = (event, 0, None, 0);
        while let Some(place) = rest.find('"') {
            let quoted = rest.get(place..)?;
            let (found, is_escaped, behind) = string(quoted)?;
            rest = behind;
            let (value, kind) = match behind.trim_ascii_start().strip_prefix(':') {
                Some(value) if value.trim_ascii_start().starts_with("null") => continue,
                Some(value) if W::IGNORED.contains(&found) => (value, HoleKind::Ignored),
                Some(value) if W::USAGE == Some(found) => (value, HoleKind::Usage),
                None if !is_escaped && found == text => (quoted, HoleKind::Text),
                None if is_escaped && unescaped(found).eq(text.chars()) => (quoted, HoleKind::Text),
                _ => continue,
            };
            let before = event.get(from..event.len() - value.len())?.to_owned();
            self.holes.push(Hole { before, kind });
            rest = if kind == HoleKind::Usage {
                counts += 1;
                pass(value, |json| format.usage(json, &mut usage))?
            } else {
                pass(value, Json::skip)?
            };
            from = event.len() - rest.len();
        }
        event.get(from..)?.clone_into(&mut self.after);
        (counts < 2).then_some(usage)
    }
}

/// Checks whether two events end alike, up to spaces between brackets: Anthropic pads with them.
#[inline]
fn end_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let closes = |text: &str| text.bytes().all(|byte| matches!(byte, b'}' | b']' | b' '));
    let is_no_space = |byte: &u8| *byte != b' ';
    closes(one) && one.bytes().filter(is_no_space).eq(other.bytes().filter(is_no_space))
}

fn text_of(kind: &DeltaKind) -> Option<&Text> {
    match kind {
        DeltaKind::Text(text) | DeltaKind::Reasoning(text) | DeltaKind::Arguments { text, .. } => Some(text),
        _ => None,
    }
}

#[inline]
fn with_text(kind: &DeltaKind, text: Text) -> Option<DeltaKind> {
    Some(match kind {
        DeltaKind::Text(_) => DeltaKind::Text(text),
        DeltaKind::Reasoning(_) => DeltaKind::Reasoning(text),
        DeltaKind::Arguments { index, .. } => DeltaKind::Arguments { index: *index, text },
        _ => return None,
    })
}

/// Shows no content of the answer.
impl fmt::Debug for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeat").field("misses", &self.misses).finish_non_exhaustive()
    }
}
