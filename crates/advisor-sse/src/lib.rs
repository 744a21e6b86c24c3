#![doc = include_str!("../README.md")]
//!
//! | encoder | protocol | clients |
//! | --- | --- | --- |
//! | [`ChatEvents`] | `content`, `tool_call_start`, `tool_call_end`, `error`, `[DONE]` | a page with an event source |
//! | [`UiMessages`] | UI message stream, profiles v5, v6 and v7 | AI SDK, `useChat` |
//! | [`AgUi`] | AG-UI | CopilotKit and other AG-UI clients |
//! | [`OpenAiChat`] | Chat Completions | OpenAI clients |
//! | [`OpenAiResponses`] | Responses | OpenAI clients |
//! | [`AnthropicMessages`] | Messages | Anthropic clients |
//! | [`Segments`] | a start, content and an end for each block | user interfaces of segments |
//! | [`JsonLines`], [`JsonEvents`] | chunks in their own JSON form | programs that fold chunks |
//! | [`PlainText`] | the text alone | `curl` |
//!
//! The module [`validate`] checks the output of each of them.

mod api_error;
mod encoder;
mod failure;
mod frames;
mod protocols;
mod shared;
pub mod validate;

pub use api_error::ApiError;
pub use encoder::{Encoder, Encoding, encode};
pub use failure::Failure;
pub use frames::Frames;
pub use frames::event_id::{EventId, EventIdError};
pub use frames::read::Frame;
pub use protocols::ag_ui::AgUi;
pub use protocols::anthropic_messages::AnthropicMessages;
pub use protocols::chat_events::{ChatDetail, ChatEvents, ContentForm, StartName};
pub use protocols::json_form::{JsonEvents, JsonLines};
pub use protocols::openai_chat::{OpenAiChat, UsageChunk};
pub use protocols::openai_responses::OpenAiResponses;
pub use protocols::plain_text::PlainText;
pub use protocols::segments::Segments;
pub use protocols::ui_messages::{UiMessages, UiProfile};
pub use shared::answer_info::AnswerInfo;
pub use shared::approvals::{ApprovalId, Approvals};
pub use shared::call_ids::CallIds;
pub use shared::json::media_as_text;
pub use shared::server_tools::ServerTools;
