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
pub use chunk::block_delta::BlockDelta;
pub use chunk::fold::ChunkFold;
pub use chunk::stream_validator::{StreamValidator, StreamViolation};
pub use chunk::tool_event::{NotStartedReason, ToolEvent, ToolEventKind};
pub use chunk::{BlockHead, BlockObserver, CallHead, Chunk};
pub use delta::{Delta, DeltaKind, MediaDelta, Origin, ToolCallDelta};
pub use json::JSON_VERSION;
pub use message::block::{Block, BlockContent, BlockKind, Citation, Opaque, ProviderData};
pub use message::block_id::{BlockId, InvalidBlockId};
pub use message::list::MessageList;
pub use message::part::{Media, MediaSource, Part};
pub use message::text::Text;
pub use message::tool_call::{ToolCall, ToolResult};
pub use message::wire_form::WireForms;
pub use message::{Message, MessageContent, Role};
pub use response::ChatResponse;
pub use response::finish::{Finish, FinishReason, Limit};
pub use response::usage::Usage;
