use advisor_core::Text;
use serde::{Deserialize, Serialize};

/// What was said in the beginning of a conversation, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The sequence number of the last entry that it tells of. With this entry a turn ends.
    pub until: u64,
    /// What it says.
    pub text: Text,
}

impl Summary {
    /// Creates a summary that tells of the entries up to this sequence number.
    pub fn new(until: u64, text: impl Into<Text>) -> Self {
        Self { until, text: text.into() }
    }
}

impl From<&str> for Summary {
    /// A summary that tells of nothing that is stored.
    fn from(text: &str) -> Self {
        Self { until: 0, text: text.into() }
    }
}
