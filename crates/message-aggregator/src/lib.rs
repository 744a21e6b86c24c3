//! Assembles the streamed answer of a language model: deltas in, chunks and one response out.
//!
//! This crate has no async and no I/O. A provider turns its wire events into [`Delta`]s, a
//! [`MessageAggregator`] turns those into [`Chunk`]s while they come in, and into one [`ChatResponse`]
//! when the answer ends.
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
//! Which call a fragment belongs to is decided by one table of rules, see [`Rule`]. Everything is
//! bounded, see [`AggregatorLimits`].

mod aggregator;
mod answer_bytes;
mod block;
mod block_delta;
mod choice;
mod chunk;
mod delta;
mod diagnostics;
mod error;
mod finish;
mod fold;
mod identity;
mod limits;
mod map_text;
mod message;
mod message_list;
mod open_block;
mod open_call;
mod part;
mod response;
mod text;
mod tool_call;
mod usage;
mod wire_form;

pub use aggregator::{AggregatorSettings, MessageAggregator};
pub use block::{Block, BlockContent, BlockKind, Citation, Opaque, ProviderData};
pub use block_delta::BlockDelta;
pub use chunk::{BlockHead, BlockId, BlockObserver, CallHead, Chunk, ToolEvent, ToolEventKind};
pub use delta::{Delta, DeltaKind, Origin, ToolCallDelta};
pub use diagnostics::{Diagnostics, Rule};
pub use error::AggregateError;
pub use finish::{Finish, FinishReason, Limit};
pub use fold::ChunkFold;
pub use limits::AggregatorLimits;
pub use message::{Message, MessageContent, Role};
pub use message_list::MessageList;
pub use part::{Media, MediaSource, Part};
pub use response::{ChatResponse, Choice};
pub use text::Text;
pub use tool_call::{ToolCall, ToolResult};
pub use usage::Usage;
pub use wire_form::WireForms;
