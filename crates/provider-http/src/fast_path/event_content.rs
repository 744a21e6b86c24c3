//! The content of an event that another event may repeat with another text.

use advisor_core::{Delta, DeltaKind, ProviderData, Text, ToolCallDelta};

/// The content of an event: one piece of the answer, with attached data and token counts.
#[derive(Clone, Copy)]
pub(super) struct EventContent<'a> {
    pub(super) delta: &'a Delta,
    pub(super) text: &'a Text,
    pub(super) data: Option<&'a ProviderData>,
    pub(super) has_counts: bool,
}

impl<'a> EventContent<'a> {
    /// Returns the content; `None` if the deltas have more than one piece, or something that another event does
    /// not repeat.
    pub(super) fn from_deltas(deltas: impl Iterator<Item = &'a Delta>) -> Option<Self> {
        let (mut piece, mut data, mut has_counts) = (None, None, false);
        for delta in deltas {
            match &delta.kind {
                DeltaKind::Usage(_) if !has_counts => has_counts = true,
                // Data is attached to the piece of reasoning before it.
                DeltaKind::ReasoningData(riding) if data.is_none() => {
                    piece.filter(|(piece, _): &(&Delta, _)| matches!(piece.kind, DeltaKind::Reasoning(_)))?;
                    data = Some((delta, &**riding));
                }
                kind if piece.is_none() => piece = Some((delta, text_of(kind)?)),
                _ => return None,
            }
        }
        let (delta, text) = piece?;
        let same_place = |(other, _): (&Delta, _)| other.block == delta.block;
        if text.is_empty() || !data.is_none_or(same_place) {
            return None;
        }
        Some(Self { delta, text, data: data.map(|(_, data)| data), has_counts })
    }

    /// Returns the fragment of a call that the event begins or repeats.
    pub(super) fn start(&self) -> Option<ToolCallDelta> {
        let DeltaKind::ToolCalls(fragments) = &self.delta.kind else { return None };
        let mut start = fragments.first()?.clone();
        start.arguments_delta = None;
        Some(start)
    }
}

/// Returns the text of a delta; `None` if it has none.
fn text_of(kind: &DeltaKind) -> Option<&Text> {
    match kind {
        DeltaKind::Text(text)
        | DeltaKind::Reasoning(text)
        | DeltaKind::Refusal(text)
        | DeltaKind::Arguments { text, .. } => Some(text),
        DeltaKind::ToolCalls(fragments) => match fragments.as_slice() {
            [fragment] => fragment.arguments_delta.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the same fragment of a call with other arguments.
#[cold]
pub(super) fn with_text(kind: &DeltaKind, arguments: Text) -> DeltaKind {
    let mut kind = kind.clone();
    if let DeltaKind::ToolCalls(fragments) = &mut kind
        && let [fragment] = fragments.as_mut_slice()
    {
        fragment.arguments_delta = Some(arguments);
    }
    kind
}
