//! A part of an item: one block.

use std::sync::Arc;

use advisor_core::{Delta, DeltaKind, ProviderData, Text};
use serde_json::Value;

use super::Deltas;
use crate::responses::wire::{Event, Part};
use crate::wire::list_of;

/// A part of a message or of reasoning while it streams. Each part is one block.
#[derive(Debug)]
pub(super) struct OpenPart {
    pub(super) place: PartPosition,
    /// The number of its block.
    pub(super) number: i64,
    pub(super) stage: PartStage,
    /// The number of its citations that were emitted.
    pub(super) citations: usize,
    /// The data that goes back with it, until it is emitted.
    pub(super) data: Vec<Arc<ProviderData>>,
}

/// The progress of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartStage {
    /// No content was emitted.
    Empty,
    /// A piece of its content was emitted, so its block is open.
    Streaming,
    /// Its block has ended.
    Ended,
}

/// The position of a part in its item, as the server numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartPosition {
    Content(i64),
    Summary(i64),
}

impl OpenPart {
    pub(super) fn is_empty(&self) -> bool {
        self.stage == PartStage::Empty
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stage == PartStage::Ended
    }

    pub(super) fn delta(&self, kind: DeltaKind) -> Delta {
        Delta::from(kind).with_block(self.number)
    }

    /// Emits a piece of the content. The data of the part follows the first one, which opens its block.
    pub(super) fn add(&mut self, piece: DeltaKind, deltas: &mut Deltas) {
        self.stage = PartStage::Streaming;
        deltas.push_back(self.delta(piece));
        self.attach(deltas);
    }

    /// Emits the data of the part, once.
    pub(super) fn attach(&mut self, deltas: &mut Deltas) {
        for data in std::mem::take(&mut self.data) {
            deltas.push_back(self.delta(DeltaKind::BlockData(Box::new(Arc::unwrap_or_clone(data)))));
        }
    }

    /// Emits the whole content if no piece of it has streamed, and ends the block.
    pub(super) fn end(&mut self, whole: Option<DeltaKind>, deltas: &mut Deltas) {
        if let Some(whole) = whole.filter(|_| self.stage == PartStage::Empty) {
            self.add(whole, deltas);
        }
        if self.stage == PartStage::Streaming {
            self.stage = PartStage::Ended;
            deltas.push_back(self.delta(DeltaKind::BlockEnd));
        }
    }

    /// Emits the citations that were not emitted one by one.
    pub(super) fn cite(&mut self, annotations: &str, deltas: &mut Deltas) {
        let annotations = list_of(annotations);
        let new = annotations.iter().skip(self.citations);
        deltas.extend(new.filter_map(citation_of));
        self.citations = self.citations.max(annotations.len());
    }
}

impl Part<'_> {
    /// Checks whether it belongs to a message, and not to reasoning.
    pub(super) fn is_of_message(&self) -> bool {
        ["output_text", "text", "refusal"].iter().any(|kind| self.kind.is(kind))
    }

    /// Returns its whole content, unless it is empty.
    pub(super) fn whole(&self) -> Option<DeltaKind> {
        let said = Text::from(self.said()?);
        Some(if self.is_refusal() { DeltaKind::Refusal(said) } else { DeltaKind::Text(said) })
    }
}

impl PartPosition {
    /// Returns the position of a part of a message or of raw reasoning.
    pub(super) fn from_content(event: &Event<'_>) -> Self {
        Self::Content(event.content_index.unwrap_or_default())
    }

    /// Returns the position of a part of a summary.
    pub(super) fn from_summary(event: &Event<'_>) -> Self {
        Self::Summary(event.summary_index.unwrap_or_default())
    }

    /// Returns the name of the other list of texts in an item of reasoning.
    pub(super) fn other_list(self) -> &'static str {
        match self {
            Self::Content(_) => "summary",
            Self::Summary(_) => "content",
        }
    }

    /// Pairs the entries of a list with their positions.
    pub(super) fn all<T>(kind: fn(i64) -> Self, entries: &[T]) -> impl Iterator<Item = (Self, &T)> {
        (0..).map(kind).zip(entries)
    }

    /// Checks whether it is beyond a list of `count` entries.
    pub(super) fn is_beyond(self, count: usize) -> bool {
        let (Self::Content(index) | Self::Summary(index)) = self;
        usize::try_from(index).is_ok_and(|index| index >= count)
    }

    /// Checks whether both are places in the same list.
    pub(super) fn is_beside(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Returns the citation of an annotation: a page, or a file of the server.
pub(super) fn citation_of(annotation: &Value) -> Option<Delta> {
    let citation = provider_http::citation_of(annotation, [&["url"], &["title", "filename"], &[]])?;
    Some(DeltaKind::Citation(Box::new(citation)).into())
}
