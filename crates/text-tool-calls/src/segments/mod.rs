//! Segments: the parts of an answer as events with ids, for those who port from such a layer.
//!
//! [`SegmentHandler`] turns the chunks of an answer into [`SegmentEvent`]s and [`Invocation`]s. The
//! names of the other layer are in `docs/coming-from.md`.

mod event;
mod handler;
mod ids;
mod open_blocks;
mod parsed_text;
mod text_segment;
mod tool_segment;

pub use event::{BrokenEnd, Invocation, SegmentEvent, SegmentEventType, SegmentPayload, SegmentType};
pub use handler::{SegmentError, SegmentHandler};
