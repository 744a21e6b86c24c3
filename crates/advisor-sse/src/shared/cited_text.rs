//! The place of a citation in OpenAI's APIs.

use advisor_core::Citation;
use serde_json::{Value, json};

/// The text that the last citations belong to, as numbers of characters.
#[derive(Debug, Default)]
pub(crate) struct CitedText {
    start: usize,
    end: usize,
}

impl CitedText {
    /// Returns the fields of a citation of an address; `None` without one.
    ///
    /// It belongs to the text up to `end`, from the text of the citation before it on, and not from before `start`.
    /// Without a text between the two, both belong to the same.
    pub(crate) fn citation(&mut self, citation: &Citation, start: usize, end: usize) -> Option<Value> {
        let url = citation.url.as_ref()?;
        if end != self.end {
            *self = Self { start: self.end.max(start), end };
        }
        let title = citation.title.as_ref().unwrap_or(url);
        Some(json!({"url": url, "title": title, "start_index": self.start, "end_index": self.end}))
    }
}
