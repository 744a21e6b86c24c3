//! `Input`: received text that is not consumed yet.

/// Whether more text may follow the received one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It may.
    Open,
    /// It does not, so all is decided.
    Ended,
}

/// Received text that is not consumed yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    text: String,
    /// The offset of the rest.
    at: usize,
}

impl Input {
    pub(crate) fn push(&mut self, text: &str) {
        // Consumed text is dropped rarely, so that many small steps through a long text stay linear.
        if self.at * 2 >= self.text.len() {
            self.text.drain(..self.at);
            self.at = 0;
        }
        self.text.push_str(text);
    }

    pub(crate) fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns at most the first `bytes` of the rest.
    pub(crate) fn window(&self, bytes: usize) -> &str {
        let rest = self.rest();
        rest.get(..rest.floor_char_boundary(bytes)).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Consumes the first `bytes`, rounded down to a character boundary.
    pub(crate) fn take(&mut self, bytes: usize) -> &str {
        let (from, end) = (self.at, self.text.floor_char_boundary(self.at.saturating_add(bytes)));
        self.at = end;
        self.text.get(from..end).unwrap_or_default()
    }

    /// Consumes the white space at the start.
    pub(crate) fn take_space(&mut self) -> &str {
        let rest = self.rest();
        self.take(rest.len() - rest.trim_start().len())
    }

    pub(crate) fn take_all(&mut self) -> &str {
        self.take(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_up_to_character_boundaries() {
        let mut input = Input::default();
        assert!(input.is_empty() && input.take(3).is_empty() && input.rest().is_empty());
        input.push(" é<");
        assert_eq!((input.window(2), input.window(100)), (" ", " é<"));
        assert_eq!(input.take_space(), " ");
        assert_eq!(input.take(1), "", "half a character is none");
        assert_eq!(input.take(2), "é");
        assert_eq!(input.take(0), "");
        assert_eq!(input.take(usize::MAX), "<");
        assert_eq!(input.take_all(), "");
    }

    #[test]
    fn consumed_text_is_dropped() {
        let mut input = Input::default();
        for round in 0..1000 {
            input.push("0123456789");
            assert_eq!(input.take(10), "0123456789", "in round {round}");
            assert!(input.text.len() <= 20, "the buffer holds {} bytes", input.text.len());
        }
        input.push(&"x".repeat(1000));
        (0..1000).for_each(|_| assert_eq!(input.take(1), "x"));
        assert!(input.is_empty());
    }
}
