//! `Summary`: a summary text and the last entry that it covers.

use advisor_core::Text;
use serde::{Deserialize, Serialize};

/// A summary of the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The sequence number of the last entry that it covers. That entry is the last of its turn.
    pub until: u64,
    /// The text.
    pub text: Text,
}

impl Summary {
    /// Creates a summary of the entries up to this sequence number.
    pub fn new(until: u64, text: impl Into<Text>) -> Self {
        Self { until, text: text.into() }
    }
}

impl From<&str> for Summary {
    /// Creates a summary that covers no stored entry.
    fn from(text: &str) -> Self {
        Self { until: 0, text: text.into() }
    }
}
