//! The encoders, one for each protocol of clients.

pub(crate) mod ag_ui;
pub(crate) mod anthropic_messages;
pub(crate) mod chat_events;
pub(crate) mod json_lines;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
pub(crate) mod ui_messages;
