//! The bytes behind the last event, for a reader that knows what the next events look like.

use super::SseDecoder;

impl SseDecoder {
    /// Returns the bytes from the next event on; `None` if a part of it was taken out already.
    ///
    /// [`consume`](Self::consume) goes on behind events that were read there.
    #[inline]
    pub fn peek(&mut self) -> Option<&[u8]> {
        if self.delivered {
            self.delivered = false;
            self.block.clear();
        }
        if self.block.is_empty() && self.failed.is_none() { self.lines.upcoming() } else { None }
    }

    /// Returns how many bytes an event of one line may have, with its line ends.
    #[must_use]
    #[inline]
    pub fn max_event_bytes(&self) -> usize {
        self.event_limit.min(self.lines.longest())
    }

    /// Goes on behind `length` of the bytes that [`peek`](Self::peek) returned, which are `events` whole events: each a `data`
    /// line and a blank one, and none longer than [`max_event_bytes`](Self::max_event_bytes).
    #[inline]
    pub fn consume(&mut self, length: usize, events: u64) {
        self.lines.skip(length);
        self.events += events;
    }

    /// Returns the data so far of an event that is not complete.
    #[must_use]
    pub fn unfinished_data(&self) -> &str {
        if self.delivered { "" } else { self.block.data() }
    }
}
