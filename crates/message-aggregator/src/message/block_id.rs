use std::fmt;

/// Id of a block: its round, its position in the round, and its part of that position. Unique within a turn.
///
/// Ids are ordered as the blocks of a message are. A block of the model has part 0. A block that an advisor adds
/// has the position of the block it follows, and a further part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The round, counted from 1.
    pub round: u32,
    // Position and part in one number, so that an id, and with it each chunk, stays small.
    index: u32,
}

/// The bits of an index that hold the part.
const PART_BITS: u32 = 16;

impl BlockId {
    /// The number of positions in a round. A block beyond them cannot have an id of its own.
    pub const POSITIONS: u32 = 1 << (u32::BITS - PART_BITS);

    /// The number of parts of a position.
    pub const PARTS: u32 = 1 << PART_BITS;

    /// Creates the id of the block at `position` of `round`. Positions count from 0; the last one stands for all
    /// beyond it.
    #[must_use]
    pub fn new(round: u32, position: u32) -> Self {
        Self { round, index: position.min(Self::POSITIONS - 1) << PART_BITS }
    }

    /// Returns the id of a part of the same position; `None` if there is no such part.
    #[must_use]
    pub fn with_part(self, part: u32) -> Option<Self> {
        (part < Self::PARTS)
            .then(|| Self { index: Self::new(self.round, self.position()).index | part, ..self })
    }

    /// Returns the block's position in the round by first appearance, counted from 0 over all choices.
    #[must_use]
    pub fn position(self) -> u32 {
        self.index >> PART_BITS
    }

    /// Returns the block's part of its position: 0 for the block of the model, from 1 for blocks that advisors add.
    #[must_use]
    pub fn part(self) -> u32 {
        self.index & (Self::PARTS - 1)
    }

    /// Returns the last possible id of a round.
    pub(crate) fn last_of(round: u32) -> Self {
        Self { round, index: u32::MAX }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.position())?;
        match self.part() {
            0 => Ok(()),
            part => write!(f, ".{part}"),
        }
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunk;

    #[test]
    fn law_r4_chunk_stays_small_with_added_blocks() {
        assert_eq!((size_of::<BlockId>(), size_of::<Chunk>()), (8, 40));
    }

    #[test]
    fn law_s3_ids_are_ordered_as_their_blocks() {
        let parts =
            |position| [0, 1, BlockId::PARTS - 1].map(|part| BlockId::new(1, position).with_part(part));
        let ids: Vec<_> = [0, 1, BlockId::POSITIONS - 1].into_iter().flat_map(parts).flatten().collect();
        assert!(ids.is_sorted_by(|a, b| a < b) && ids.len() == 9, "{ids:?}");
        assert!(ids.iter().all(|id| *id < BlockId::new(2, 0) && *id <= BlockId::last_of(1)));
        let last = BlockId::new(3, u32::MAX).with_part(7).unwrap();
        assert_eq!((last.round, last.position(), last.part()), (3, BlockId::POSITIONS - 1, 7));
        assert_eq!(BlockId::new(1, 2).with_part(BlockId::PARTS), None);
        assert_eq!(last.with_part(0), Some(BlockId::new(3, u32::MAX)));
        let shown = [BlockId::new(1, 2), BlockId::new(1, 2).with_part(3).unwrap()].map(|id| id.to_string());
        assert_eq!(shown, ["1.2", "1.2.3"]);
    }
}
