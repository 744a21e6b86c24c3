//! `View`: the parts of a conversation that a client shows; the page shows more than others. `EventView`: the events
//! of a turn that it reads.

use advisor_sse::{ChatEvents, ContentForm, Encoder, StartName};
use serde::Deserialize;

use super::page::events::PageEvents;

/// The query of a route that reads conversations for plain clients and the page.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    pub(super) view: View,
}

/// The parts of a conversation that a client shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// Text and calls.
    #[default]
    Answer,
    /// All parts that the page shows: also reasoning, and the blocks of each answer in their order.
    Page,
}

/// The query of a route that streams a turn to plain clients and the page.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedEvents {
    #[serde(default)]
    pub(super) view: EventView,
}

/// The events of a turn that a client reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventView {
    /// Text and calls.
    #[default]
    Answer,
    /// All events that the page shows: also reasoning, the blocks of each answer, and Markdown as elements.
    Page,
    /// Text and calls in the forms of older clients: `{"content":"…"}` without a type, and `tool_call`.
    Legacy,
}

impl EventView {
    /// Returns the encoder of a turn.
    pub(super) fn encoder(self) -> Box<dyn Encoder> {
        let events = ChatEvents::new();
        match self {
            Self::Answer => Box::new(events),
            Self::Page => Box::new(PageEvents::new()),
            Self::Legacy => {
                Box::new(events.with_content_form(ContentForm::Bare).with_start_name(StartName::ToolCall))
            }
        }
    }
}
