//! `Replacements`: gives equal replacements of one message the same handle, so memory stores them once.

use std::collections::HashMap;

use message_aggregator::Message;

/// Replacements of messages of a turn, so that an equal replacement is the same message each time.
///
/// Memory identifies a message by its handle. Without this, an advisor that maps the user's message would have it
/// stored twice in a turn that calls the advisor twice.
#[derive(Default)]
pub(crate) struct Replacements(HashMap<usize, Replaced>);

struct Replaced {
    /// Kept alive, so that no other message has its address.
    original: Message,
    by: Vec<Message>,
}

impl Replacements {
    /// Returns a message, its replacements, and theirs.
    pub(crate) fn versions_of(&self, original: &Message) -> Vec<Message> {
        let (mut versions, mut seen) = (vec![original.clone()], 0);
        while let Some(version) = versions.get(seen) {
            let replaced = self.0.get(&std::ptr::from_ref(version.content()).addr());
            for by in replaced.map(|replaced| replaced.by.as_slice()).unwrap_or_default() {
                if !versions.iter().any(|known| known.is_same(by)) {
                    versions.push(by.clone());
                }
            }
            seen += 1;
        }
        versions
    }

    /// Returns the message that this one replaces.
    pub(crate) fn original_of(&self, new: &Message) -> Option<&Message> {
        let is_by = |replaced: &&Replaced| replaced.by.iter().any(|by| by.is_same(new));
        self.0.values().find(is_by).map(|replaced| &replaced.original)
    }

    /// Returns the known replacement of `original` that equals `new`, or stores and returns `new`.
    pub(crate) fn stable(&mut self, original: &Message, new: Message) -> Message {
        if new.is_same(original) {
            return new;
        }
        let replaced = self
            .0
            .entry(std::ptr::from_ref(original.content()).addr())
            .or_insert_with(|| Replaced { original: original.clone(), by: Vec::new() });
        if let Some(known) = replaced.by.iter().find(|known| **known == new) {
            return known.clone();
        }
        replaced.by.push(new.clone());
        new
    }
}
