//! Access to the bytes after the last event, for a reader that knows the form of the next events.

use super::SseDecoder;

impl SseDecoder {
    /// Returns the bytes from the next event on; `None` if a part of it was consumed already.
    ///
    /// [`consume`](Self::consume) skips events that were read there.
    #[inline]
    pub fn peek(&mut self) -> Option<&[u8]> {
        if self.delivered {
            self.delivered = false;
            self.block.clear();
        }
        if self.block.is_empty() && self.failed.is_none() { self.lines.upcoming() } else { None }
    }

    /// Returns the maximum bytes of an event of one line, with its line ends.
    #[must_use]
    #[inline]
    pub fn max_event_bytes(&self) -> usize {
        self.event_limit.min(self.lines.longest())
    }

    /// Skips `length` of the bytes that [`peek`](Self::peek) returned, which are `events` whole events. Each has a
    /// `data` line and a blank one, and none is longer than [`max_event_bytes`](Self::max_event_bytes).
    #[inline]
    pub fn consume(&mut self, length: usize, events: u64) {
        self.lines.skip(length);
        self.events += events;
    }

    /// Returns the data so far of an incomplete event.
    #[must_use]
    pub fn unfinished_data(&self) -> &str {
        if self.delivered { "" } else { self.block.data() }
    }
}
