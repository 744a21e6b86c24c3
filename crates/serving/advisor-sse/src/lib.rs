//! Encoders of the chunks of a streamed language-model answer: server-sent events for AI SDK, AG-UI, OpenAI
//! and Anthropic clients.
//!
#![doc = include_str!("../README.md")]
//!
//! | encoder | protocol | clients |
//! | --- | --- | --- |
//! | [`ChatEvents`] | `content`, `tool_call_start`, `tool_call_end`, `error`, `[DONE]` | a page with an event source |
//! | [`UiMessages`] | UI message stream | AI SDK from version 6 on, `useChat` |
//! | [`AgUi`] | AG-UI | CopilotKit and other AG-UI clients |
//! | [`OpenAiChat`] | Chat Completions | OpenAI clients |
//! | [`OpenAiResponses`] | Responses | OpenAI clients |
//! | [`AnthropicMessages`] | Messages | Anthropic clients |
//! | [`JsonLines`] | chunks in their own JSON form | programs that fold chunks |

mod approvals;
mod content;
mod encoder;
mod failure;
mod frames;
mod protocols;
mod turn;

pub use approvals::{ApprovalId, Approvals};
pub use content::{AnswerInfo, media_as_text};
pub use encoder::{Encoder, Encoding, encode};
pub use failure::{ApiError, Failure};
pub use frames::{EventId, Frame, Frames};
pub use protocols::ag_ui::AgUi;
pub use protocols::anthropic_messages::AnthropicMessages;
pub use protocols::chat_events::ChatEvents;
pub use protocols::json_lines::JsonLines;
pub use protocols::openai_chat::OpenAiChat;
pub use protocols::openai_responses::OpenAiResponses;
pub use protocols::ui_messages::UiMessages;
pub use turn::CallIds;
