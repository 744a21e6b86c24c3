//! Segments: the parts of an answer as events with ids, for those who port from such a layer.
//!
//! [`SegmentHandler`] turns the chunks of an answer into [`SegmentEvent`]s and [`Invocation`]s. The guide to porting
//! is `docs/porting-from-segments.md`.

mod event;
mod handler;
mod ids;
mod open_blocks;
mod parsed_text;
mod text_segment;
mod tool_segment;

pub use event::{BrokenEnd, Invocation, SegmentEvent, SegmentEventType, SegmentPayload, SegmentType};
pub use handler::{SegmentError, SegmentHandler};
