//! The Responses API of OpenAI, beside Chat Completions.

pub(crate) mod answer;
mod model;

mod request;
pub(crate) mod wire;

pub use model::OpenAiResponsesModel;
