//! Raw details of reasoning, in pieces. Pieces that differ only in their text are joined, so that an answer of many
//! pieces keeps one.

use provider_http::json::{Str, read, value};
use serde_json::Value;
use std::fmt;

/// The most bytes that wait. Longer details are passed on in pieces, so that the limits of an answer count them.
const MOST: usize = 64 << 10;

/// The details since the last [`end`](Details::end).
#[derive(Default)]
pub(super) struct Details {
    entries: Vec<Detail>,
    bytes: usize,
    /// The number of details of the last event.
    pub(super) new: usize,
    /// Whether their text is that of the last event.
    pub(super) are_said: bool,
}

/// The JSON of a detail: what is before the text, its spelling, and the rest.
struct Detail {
    before: String,
    text: String,
    after: String,
}

impl Details {
    /// Adds the objects of a list in JSON. Returns their texts.
    pub(super) fn add(&mut self, list: &str) -> String {
        let mut texts = String::new();
        if list.is_empty() {
            return texts;
        }
        // The list is part of an event, which was read.
        let _is_json = read(list, |json| {
            json.objects(|detail| {
                let (mut whole, mut text) = ("", Str::default());
                let rest = detail.raw(&mut whole)?;
                detail.object(|key| match key.is_any(["text", "summary"]) {
                    Some(value) => value.text(&mut text),
                    None => key.skip(),
                })?;
                texts.push_str(&text.text().unwrap_or_default());
                self.add_detail(whole, text.spelling());
                Some(rest)
            })
        });
        texts
    }

    /// Adds a detail with this text, as both are spelled.
    fn add_detail(&mut self, whole: &str, text: &str) {
        let at = text.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        let place =
            if text.is_empty() { None } else { Some((whole.get(..at), whole.get(at + text.len()..))) };
        let (before, after) = match place {
            Some((Some(before), Some(after))) if before.ends_with('"') => (before, after),
            _ => (whole, ""),
        };
        self.bytes = self.bytes.saturating_add(whole.len());
        self.new += 1;
        match self.entries.last_mut() {
            Some(last) if !after.is_empty() && last.before == before && last.after == after => {
                last.text.push_str(text);
            }
            _ => {
                let text = if after.is_empty() { "" } else { text };
                self.entries.push(Detail { before: before.into(), text: text.into(), after: after.into() });
            }
        }
    }

    /// Adds the details of an event that is like the last one, but says this. Returns false if it must be read.
    pub(super) fn repeat(&mut self, spelling: &str) -> bool {
        match self.entries.last_mut() {
            Some(last) if self.new == 1 && self.are_said && !last.after.is_empty() && self.bytes < MOST => {
                last.text.push_str(spelling);
                self.bytes += spelling.len();
                true
            }
            _ => false,
        }
    }

    /// Checks whether more than a few details wait.
    pub(super) fn are_long(&self) -> bool {
        self.bytes > MOST
    }

    /// Takes the details; `None` if there are none.
    pub(super) fn end(&mut self) -> Option<Vec<Value>> {
        if self.entries.is_empty() {
            return None;
        }
        self.bytes = 0;
        let whole = |Detail { before, text, after }| value(&format!("{before}{text}{after}")).ok();
        Some(std::mem::take(&mut self.entries).into_iter().filter_map(whole).collect())
    }
}

/// Shows no content of the answer.
impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Details").field("entries", &self.entries.len()).finish()
    }
}
