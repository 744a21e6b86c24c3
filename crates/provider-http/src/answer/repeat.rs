//! `Repeat`: a shortcut past the reader, for an event that differs from the one before only in its text.

use std::fmt;

use advisor_core::{Delta, DeltaKind, Text};

use super::wire_format::AnswerEvent;

/// The events in a row that were like none before, until no more are looked at: some servers pad or count each event.
const MOST_MISSES: u8 = 8;

/// The event before, if it gave one piece of text and nothing else, as nearly all events of an answer do.
///
/// That text is a string in it. An event that has the same bytes before and after the inside of that string gives the same
/// delta with the other text, as long as the format [says so](super::WireFormat::repeats).
#[derive(Default)]
pub(super) struct Repeat {
    /// The piece, if there is one. Its text does not matter.
    piece: Option<Delta>,
    name: Option<String>,
    before: String,
    after: String,
    misses: u8,
}

impl Repeat {
    /// Returns the delta of an event like the one before.
    #[inline]
    pub(super) fn read(&mut self, event: AnswerEvent<'_>) -> Option<Delta> {
        let piece = self.piece.as_ref()?;
        let text = event.data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let is_plain = text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        if text.is_empty() || !is_plain || event.name != self.name.as_deref() {
            return None;
        }
        let mut delta = Delta::from(with_text(&piece.kind, text.into())?);
        delta.block = piece.block;
        self.misses = 0;
        Some(delta)
    }

    /// Forgets the event before.
    pub(super) fn forget(&mut self) {
        self.piece = None;
    }

    /// Notes an event that gave only this delta.
    pub(super) fn note(&mut self, event: AnswerEvent<'_>, delta: &Delta) {
        self.piece = None;
        let Some(text) = text_of(&delta.kind).filter(|_| self.misses < MOST_MISSES) else { return };
        self.misses += 1;
        let quoted = format!("\"{text}\"");
        let mut places = event.data.match_indices(&quoted);
        let (Some((at, _)), None) = (places.next(), places.next()) else { return };
        let (Some(before), Some(after)) = (event.data.get(..=at), event.data.get(at + quoted.len() - 1..))
        else {
            return;
        };
        before.clone_into(&mut self.before);
        after.clone_into(&mut self.after);
        self.name = event.name.map(str::to_owned);
        self.piece = Some(delta.clone());
    }
}

fn text_of(kind: &DeltaKind) -> Option<&Text> {
    match kind {
        DeltaKind::Text(text) | DeltaKind::Reasoning(text) | DeltaKind::Arguments { text, .. } => Some(text),
        _ => None,
    }
}

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
