//! OpenAI-compatible Chat Completions for advisor chains: streaming, tool calls, profiles for compatible servers.

pub mod backoff;
pub mod sse;
pub mod timeouts;
pub mod transport;
