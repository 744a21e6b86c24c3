//! A second model that answers when the first one fails.

use advisor_chain::ChatModel;
use advisor_chain::chain::FallbackModel;

/// Asks the second model if the first fails, also in the middle of an answer.
pub fn with_fallback(first: impl ChatModel, second: impl ChatModel) -> FallbackModel {
    FallbackModel::new(first).with_fallback(second).with_restart_after_output()
}
