//! `View`: the parts of a conversation or of a turn that a client shows; the page shows more than others.

use advisor_sse::{ChatEvents, Encoder};
use serde::Deserialize;

use super::page::events::PageEvents;

/// The query of a route for plain clients and the page.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    pub(super) view: View,
}

/// The parts of a conversation or of a turn that a client shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// Text and calls.
    #[default]
    Answer,
    /// All parts that the page shows: also reasoning, the blocks of each answer in their order, and Markdown as elements.
    Page,
}

impl View {
    /// Returns the encoder of a turn.
    pub(super) fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Self::Answer => Box::new(ChatEvents::new()),
            Self::Page => Box::new(PageEvents::new()),
        }
    }
}
