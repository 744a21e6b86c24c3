//! `AnswerInfo`: the data that providers' protocols repeat on their events.

use advisor_core::Text;

/// The data of an answer that providers' protocols repeat on their events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerInfo {
    pub(crate) id: Text,
    pub(crate) model: Text,
    pub(crate) created: u64,
}

impl AnswerInfo {
    /// Creates the data of an answer.
    ///
    /// `id` is unique. `model` is the name in the client's request. `created` is the time in seconds since 1970.
    pub fn new(id: impl Into<Text>, model: impl Into<Text>, created: u64) -> Self {
        Self { id: id.into(), model: model.into(), created }
    }
}
