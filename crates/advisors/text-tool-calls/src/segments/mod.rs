//! Segments: the parts of an answer as events with ids, for those who port from such a layer.
//!
//! [`SegmentHandler`] turns the chunks of an answer into [`SegmentEvent`]s and [`Invocation`]s. The
//! names of the other layer are in `docs/coming-from.md`.

mod event;
mod handler;
mod open;

pub use event::{BrokenEnd, Invocation, SegmentEvent, SegmentEventType, SegmentPayload, SegmentType};
pub use handler::SegmentHandler;
