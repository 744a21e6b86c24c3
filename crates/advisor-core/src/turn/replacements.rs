use std::collections::HashMap;

use message_aggregator::Message;

/// What messages of a turn were replaced by, so that the same replacement is the same message each time.
///
/// Memory knows a message by its handle. An advisor that maps the user's message would otherwise have it stored twice
/// in a turn in which it is asked twice.
#[derive(Default)]
pub(crate) struct Replacements(HashMap<usize, Replaced>);

struct Replaced {
    /// Kept alive, so that no other message has its address.
    _original: Message,
    by: Vec<Message>,
}

impl Replacements {
    /// Returns the replacement of `original` that says the same as `new`, which is noted if it is the first.
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
