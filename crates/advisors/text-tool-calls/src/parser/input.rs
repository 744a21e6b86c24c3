//! `Input`: received text that is not consumed yet.

/// Received text that is not consumed yet.
#[derive(Default)]
pub(super) struct Input {
    text: String,
    /// The offset of the rest.
    at: usize,
}

impl Input {
    pub(super) fn push(&mut self, text: &str) {
        // Consumed text is dropped rarely, so that many small steps through a long text stay linear.
        if self.at * 2 >= self.text.len() {
            self.text.drain(..self.at);
            self.at = 0;
        }
        self.text.push_str(text);
    }

    pub(super) fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns at most the first `bytes` of the rest.
    pub(super) fn window(&self, bytes: usize) -> &str {
        let rest = self.rest();
        rest.get(..rest.floor_char_boundary(bytes)).unwrap_or_default()
    }

    /// Consumes the first `bytes`, rounded down to a character boundary.
    pub(super) fn take(&mut self, bytes: usize) -> &str {
        let (from, end) = (self.at, self.text.floor_char_boundary(self.at.saturating_add(bytes)));
        self.at = end;
        self.text.get(from..end).unwrap_or_default()
    }

    /// Consumes the white space at the start.
    pub(super) fn take_space(&mut self) -> &str {
        let rest = self.rest();
        self.take(rest.len() - rest.trim_start().len())
    }
}
