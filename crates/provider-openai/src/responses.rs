//! The Responses API of OpenAI, beside Chat Completions.

pub(crate) mod answer;
mod model;
#[cfg(test)]
mod replay;
mod request;
pub(crate) mod wire;

pub use model::OpenAiResponsesModel;
