//! OpenAI-compatible Chat Completions for advisor chains: streaming, tool calls, profiles for compatible servers.

mod answer;
pub mod backoff;
mod convert;
mod events;
mod failure;
mod model;
mod profile;
mod recording;
mod request;
pub mod sse;
pub mod timeouts;
pub mod transport;
mod wire;

pub use failure::ProviderError;
pub use model::OpenAiModel;
pub use profile::{
    Authorization, CallIds, EchoWhen, Endpoint, MaxTokensField, MessageRules, NamedTool, NoText, OptionRules,
    Profile, ReasoningEcho, ReasoningField, RequiredTool, SeedField, TextMode,
};
pub use recording::{aggregate_recording, frame_json_lines};
