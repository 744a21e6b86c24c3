//! `Texts`: finds the content of events, and keeps all texts in one buffer.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::unescape::unescape;

static CONTENT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""content":""#));

/// Texts that were found, one after the other in one buffer.
#[derive(Default)]
pub(crate) struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Looks for content and takes it; false if there is none.
    pub(crate) fn find_in(&mut self, data: &[u8]) -> bool {
        let Some(found) = CONTENT.find(data) else { return false };
        let rest = &data[found + CONTENT.needle().len()..];
        if unescape(rest, &mut self.all).is_none() {
            return false;
        }
        if self.ends.last() != Some(&self.all.len()) && !self.all.is_empty() {
            self.ends.push(self.all.len());
        }
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.all[start..*end])
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }
}
