//! Events that somebody else reads, who knows what they look like: `shapes.rs`; and what came of one that has no end yet.

use super::SseDecoder;

impl SseDecoder {
    /// The bytes from the next event on, if it begins here and nothing of it was taken out yet.
    #[inline]
    pub(crate) fn upcoming(&mut self) -> Option<&[u8]> {
        if self.delivered {
            self.delivered = false;
            self.block.clear();
        }
        if self.block.is_empty() && self.failed.is_none() { self.lines.upcoming() } else { None }
    }

    /// How long an event of one line may be, with its line ends.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.event_limit.min(self.lines.longest())
    }

    /// Goes on behind so many of the [upcoming](Self::upcoming) bytes, which are so many events: each a `data` line and a blank
    /// one, and none [too long](Self::longest).
    #[inline]
    pub(crate) fn skip_events(&mut self, length: usize, events: u64) {
        self.lines.skip(length);
        self.events += events;
    }

    /// The data so far of an event that is not complete.
    pub(crate) fn begun(&self) -> &str {
        if self.delivered { "" } else { self.block.data() }
    }
}
