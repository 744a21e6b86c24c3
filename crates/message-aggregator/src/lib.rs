//! Assembles streamed model deltas into ordered blocks and one response; no async, no I/O.
//!
#![doc = include_str!("../README.md")]
//!
//! | word | type |
//! | --- | --- |
//! | delta: a fragment as a provider sent it | [`Delta`], [`ToolCallDelta`] |
//! | chunk: an item of the stream that advisors see | [`Chunk`] |
//! | block: an ordered part of an assistant message | [`Block`], [`BlockContent`] |
//! | response: the finished aggregate of one answer | [`ChatResponse`] |
//! | transcript: the ordered messages of a conversation | [`MessageList`] of [`Message`] |
//! | tool call, tool result | [`ToolCall`], [`ToolResult`] |
//!
//! All buffers are bounded, see [`AggregatorLimits`].

mod aggregator;
mod chunk;
mod delta;
pub mod json;
mod message;
mod response;

pub use aggregator::MessageAggregator;
pub use aggregator::bounds::AggregateError;
pub use aggregator::settings::{AggregatorLimits, AggregatorSettings};
pub use chunk::fold::ChunkFold;
pub use chunk::{BlockDelta, BlockHead, CallHead, Chunk, NotStartedReason, ToolEvent, ToolEventKind};
pub use delta::{Delta, DeltaKind, MediaDelta, Origin, ToolCallDelta};
pub use json::JSON_VERSION;
pub use message::block::{Block, BlockContent, BlockId, BlockKind, Citation, Opaque, ProviderData};
pub use message::list::MessageList;
pub use message::part::{Media, MediaSource, Part};
pub use message::text::Text;
pub use message::tool_call::{ToolCall, ToolResult};
pub use message::{Message, MessageContent, Role, WireForms};
pub use response::{ChatResponse, Finish, FinishReason, Limit, ResponseFields, Usage};
