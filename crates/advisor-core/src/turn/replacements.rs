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
    _original: Message,
    by: Vec<Message>,
}

impl Replacements {
    /// Returns the known replacement of `original` that equals `new`, or stores and returns `new`.
    pub(crate) fn stable(&mut self, original: &Message, new: Message) -> Message {
        if new.is_same(original) {
            return new;
        }
        let replaced = self
            .0
            .entry(std::ptr::from_ref(original.content()).addr())
            .or_insert_with(|| Replaced { _original: original.clone(), by: Vec::new() });
        if let Some(known) = replaced.by.iter().find(|known| **known == new) {
            return known.clone();
        }
        replaced.by.push(new.clone());
        new
    }
}
