/// Received text that is not consumed yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    text: String,
    /// Where the rest begins.
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

    /// Returns the beginning of the rest, of at most so many bytes.
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
