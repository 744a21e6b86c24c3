use std::fmt;

/// Id of a block: its round and its position in the round. Unique within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct BlockId {
    /// The round, counted from 1.
    pub round: u32,
    /// The block's position in the round by first appearance, counted from 0 over all choices.
    pub index: u32,
}

impl BlockId {
    /// Creates the id of the block at `index` of `round`.
    #[must_use]
    pub fn new(round: u32, index: u32) -> Self {
        Self { round, index }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.index)
    }
}
