//! `MessageList`: clones and grows in constant time; keeps one serialised form that grows with the list.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Message, Role};

/// An ordered list of messages that clones and grows in constant time.
///
/// Clones share common messages, so fifty rounds of one turn hold each message once. Iterating from front to back
/// costs one small allocation.
#[derive(Clone, Default)]
pub struct MessageList {
    last: Option<Arc<Node>>,
    len: usize,
}

struct Node {
    message: Message,
    before: Option<Arc<Self>>,
    written: Slot,
}

/// Cached wire form of the list up to a message.
#[derive(Default)]
struct Slot(Mutex<Option<Box<dyn Any + Send>>>);

impl MessageList {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.last = Some(Arc::new(Node { message, before: self.last.take(), written: Slot::default() }));
        self.len += 1;
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Checks whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the last message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.last.as_deref().map(|node| &node.message)
    }

    /// Iterates over the messages, last first, without an allocation.
    pub fn iter_back(&self) -> impl Iterator<Item = &Message> {
        std::iter::successors(self.last.as_deref(), |node| node.before.as_deref()).map(|node| &node.message)
    }

    /// Iterates over the messages, first to last.
    pub fn iter(&self) -> std::vec::IntoIter<&Message> {
        self.tail(self.len).into_iter()
    }

    /// Returns the last `count` messages, first to last; fewer if the list is shorter.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<&Message> {
        let mut messages = Vec::with_capacity(count.min(self.len));
        messages.extend(self.iter_back().take(count));
        messages.reverse();
        messages
    }

    /// Returns the messages of this list that are not in `earlier`, in order.
    ///
    /// If this list grew from `earlier`, the cost depends on the number of new messages only; otherwise every pair
    /// is compared.
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

    /// Returns the wire form of the whole list, extended from the cached form of a prefix. So the cost of a
    /// request depends on its new messages only, however long the conversation is.
    ///
    /// `extend` receives the cached form of the longest prefix for which `usable` returns true, if any, and the
    /// messages after it. Its result is cached with this list and removed from the prefix, so that a growing list
    /// holds one form. `T` is a type of the caller.
    ///
    /// The cache has one slot for all wire formats. If two formats alternate, or the next list lacks the last
    /// messages of this one, `extend` receives the list from its beginning. Each message still has its own cached
    /// form ([`Message::wire_form`]).
    ///
    /// # Errors
    /// Those of `extend`.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::{Message, MessageList};
    ///
    /// let written = |list: &MessageList, new: &mut usize| {
    ///     list.wire_form(|_: &String| true, |known, messages| {
    ///         *new = messages.len();
    ///         Ok::<_, ()>(messages.iter().fold(known.unwrap_or_default(), |all, message| all + &message.text()))
    ///     })
    /// };
    /// let (mut list, mut new) = (MessageList::from(vec![Message::user("a"), Message::assistant("b")]), 0);
    /// assert_eq!((written(&list, &mut new), new), (Ok("ab".to_owned()), 2));
    /// list.push(Message::user("c"));
    /// assert_eq!((written(&list, &mut new), new), (Ok("abc".to_owned()), 1));
    /// ```
    pub fn wire_form<T: Clone + Send + 'static, E>(
        &self,
        usable: impl Fn(&T) -> bool,
        extend: impl FnOnce(Option<T>, &[&Message]) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut nodes = std::iter::successors(self.last.as_deref(), |node| node.before.as_deref());
        let mut known = None;
        let written_before = nodes.position(|node| {
            known = node.written.take(&usable);
            known.is_some()
        });
        let form = extend(known, &self.tail(written_before.unwrap_or(self.len)))?;
        if let Some(last) = &self.last {
            last.written.put(form.clone());
        }
        Ok(form)
    }

    /// Returns the system messages and the other messages, both in order.
    #[must_use]
    pub fn split_system(&self) -> (Vec<Message>, Vec<Message>) {
        self.iter().cloned().partition(|message| message.role() == Role::System)
    }
}

impl Slot {
    fn take<T: Any>(&self, usable: impl Fn(&T) -> bool) -> Option<T> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slot.as_ref()?.downcast_ref().is_some_and(usable) {
            return None;
        }
        slot.take()?.downcast().ok().map(|form| *form)
    }

    fn put<T: Any + Send>(&self, form: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(form));
    }
}

impl Drop for MessageList {
    fn drop(&mut self) {
        // The default drop would recurse once per message, so a long transcript would overflow the stack.
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

impl IntoIterator for MessageList {
    type Item = Message;
    type IntoIter = std::vec::IntoIter<Message>;

    /// Iterates over the messages, first to last.
    fn into_iter(self) -> Self::IntoIter {
        self.iter().cloned().collect::<Vec<_>>().into_iter()
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
    fn owned_list_iterates_from_front_to_back() {
        let list = MessageList::from(vec![Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let shared = list.clone();
        let messages: Vec<Message> = list.into_iter().collect();
        assert_eq!(messages, [Message::user("a"), Message::assistant("b"), Message::user("c")]);
        assert!(messages.iter().zip(&shared).all(|(owned, shared)| owned.is_same(shared)));
        assert_eq!(shared.into_iter().rev().map(|message| message.text()).collect::<String>(), "cba");
        assert_eq!(MessageList::new().into_iter().count(), 0);
    }

    #[test]
    fn additions_are_found_in_grown_and_rebuilt_lists() {
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
    fn cached_wire_form_moves_to_growing_list() {
        let written = |list: &MessageList, form: usize| {
            let mut new = 0;
            let extend = |known: Option<(usize, String)>, messages: &[&Message]| {
                new = messages.len();
                let known = known.map_or_else(String::new, |(_, known)| known);
                Ok::<_, ()>((form, messages.iter().fold(known, |all, message| all + &message.text())))
            };
            let (_, all) = list.wire_form(|known: &(usize, String)| known.0 == form, extend).unwrap();
            (all, new)
        };
        let form = |all: &str, new: usize| (all.to_owned(), new);
        let mut list = MessageList::from(vec![Message::user("a"), Message::assistant("b")]);
        let mut branch = list.clone();
        assert_eq!(written(&list, 1), form("ab", 2));
        assert_eq!(written(&list, 1), form("ab", 0), "the same list again");
        list.push(Message::user("c"));
        assert_eq!(written(&list, 1), form("abc", 1));
        branch.push(Message::user("d"));
        assert_eq!(written(&branch, 1), form("abd", 3), "the other list took it along");
        assert_eq!(written(&list, 2), form("abc", 3), "of another form");
        assert_eq!(written(&list, 2), form("abc", 0));
        assert_eq!(written(&MessageList::new(), 1), form("", 0));
        let failed = list.wire_form(|known: &(usize, String)| known.0 == 2, |_, _| Err("full"));
        assert_eq!(failed, Err("full"));
        assert_eq!(written(&list, 2), form("abc", 3), "nothing is left of it");
    }

    #[test]
    fn concurrent_writers_of_one_list_write_same_form() {
        let list = MessageList::from(vec![Message::user("a"), Message::assistant("b")]);
        let both_write = std::sync::Barrier::new(2);
        let write = || {
            list.wire_form(
                |_: &String| true,
                |known, messages| {
                    both_write.wait();
                    let known = known.unwrap_or_default();
                    Ok::<_, ()>(messages.iter().fold(known, |all, message| all + &message.text()))
                },
            )
        };
        let written =
            std::thread::scope(|scope| [write, write].map(|write| scope.spawn(write)).map(|it| it.join()));
        assert_eq!(written.map(Result::unwrap), [Ok("ab".to_owned()), Ok("ab".to_owned())]);
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
