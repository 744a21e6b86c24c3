use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Message, Role};

/// An ordered list of messages that clones and grows in constant time.
///
/// Clones share what they have in common, so fifty rounds of one turn hold each message once.
/// Reading from front to back costs one small allocation.
#[derive(Clone, Default)]
pub struct MessageList {
    last: Option<Arc<Node>>,
    len: usize,
}

struct Node {
    message: Message,
    before: Option<Arc<Self>>,
}

impl MessageList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.last = Some(Arc::new(Node { message, before: self.last.take() }));
        self.len += 1;
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.last.as_deref().map(|node| &node.message)
    }

    /// The messages, last first; costs nothing to begin.
    pub fn iter_back(&self) -> impl Iterator<Item = &Message> {
        std::iter::successors(self.last.as_deref(), |node| node.before.as_deref()).map(|node| &node.message)
    }

    /// The messages, first to last.
    pub fn iter(&self) -> std::vec::IntoIter<&Message> {
        self.tail(self.len).into_iter()
    }

    /// The last `count` messages, first to last; fewer if there are fewer.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<&Message> {
        let mut messages = Vec::with_capacity(count.min(self.len));
        messages.extend(self.iter_back().take(count));
        messages.reverse();
        messages
    }

    /// The messages of this list that are not in `earlier`, in order.
    ///
    /// If this list grew from `earlier`, it costs as much as there is new; otherwise every pair is compared.
    #[must_use]
    pub fn added_since(&self, earlier: &Self) -> Vec<Message> {
        let mut node = self.last.as_ref();
        for _ in earlier.len..self.len {
            node = node.and_then(|node| node.before.as_ref());
        }
        let grew = match (node, &earlier.last) {
            (Some(mine), Some(theirs)) => self.len >= earlier.len && Arc::ptr_eq(mine, theirs),
            (None, None) => true,
            _ => false,
        };
        if grew {
            return self.tail(self.len - earlier.len).into_iter().cloned().collect();
        }
        let is_new = |message: &&Message| !earlier.iter_back().any(|known| known.is_same(message));
        self.iter().filter(is_new).cloned().collect()
    }

    /// The system messages apart from the others, both in order.
    #[must_use]
    pub fn split_system(&self) -> (Vec<Message>, Vec<Message>) {
        self.iter().cloned().partition(|message| message.role() == Role::System)
    }
}

impl Drop for MessageList {
    fn drop(&mut self) {
        // A plain drop would recurse once per message; a long transcript would overflow the stack.
        let mut node = self.last.take();
        while let Some(mut owned) = node.and_then(Arc::into_inner) {
            node = owned.before.take();
        }
    }
}

impl Extend<Message> for MessageList {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl FromIterator<Message> for MessageList {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut list = Self::new();
        list.extend(messages);
        list
    }
}

impl From<Vec<Message>> for MessageList {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl From<Message> for MessageList {
    fn from(message: Message) -> Self {
        Self::from_iter([message])
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Message;
    type IntoIter = std::vec::IntoIter<&'a Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for MessageList {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter_back().eq(other.iter_back())
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for MessageList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for MessageList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Message>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_and_grow_apart() {
        let mut one = MessageList::from(vec![Message::user("a"), Message::assistant("b")]);
        let mut two = one.clone();
        one.push(Message::user("c"));
        two.push(Message::user("d"));
        let texts = |list: &MessageList| list.iter().map(Message::text).collect::<Vec<_>>();
        assert_eq!(texts(&one), ["a", "b", "c"]);
        assert_eq!(texts(&two), ["a", "b", "d"]);
        assert!(one.iter().next().unwrap().is_same(two.iter().next().unwrap()));
        assert_eq!(one.tail(2).len(), 2);
    }

    #[test]
    fn what_was_added_is_found_in_grown_and_in_rebuilt_lists() {
        let mut earlier = MessageList::from(vec![Message::user("a"), Message::user("b")]);
        let mut grown = earlier.clone();
        assert_eq!(grown.added_since(&earlier), []);
        grown.push(Message::user("c"));
        assert_eq!(grown.added_since(&earlier), [Message::user("c")]);
        assert_eq!(grown.added_since(&MessageList::new()).len(), 3);
        let mut rebuilt = MessageList::from(vec![Message::system("new")]);
        rebuilt.extend(earlier.iter().cloned());
        assert_eq!(rebuilt.added_since(&earlier), [Message::system("new")]);
        earlier.push(Message::user("other"));
        assert_eq!(grown.added_since(&earlier), [Message::user("c")]);
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        let list: MessageList = (0..200_000).map(|_| Message::user("x")).collect();
        drop(list.clone());
        drop(list);
    }

    #[test]
    fn it_survives_a_round_trip_through_json() {
        let list = MessageList::from(vec![Message::system("s"), Message::user("u").ephemeral()]);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<MessageList>(&json).unwrap(), list);
    }
}
