//! `MessageList`: the ordered messages of a conversation, shared by its clones.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, Role};

/// An ordered list of messages. It dereferences to a slice of them.
///
/// A clone costs nothing. The first message that is added to a list with clones copies its handles, not the messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageList(Arc<Vec<Message>>);

impl MessageList {
    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.extend([message]);
    }

    /// Returns the messages of this list that are not in `earlier`, in order.
    ///
    /// If this list grew from `earlier`, each message is looked at once; otherwise every pair is compared.
    #[must_use]
    pub fn added_since(&self, earlier: &Self) -> Vec<Message> {
        if let Some((beginning, added)) = self.split_at_checked(earlier.len())
            && beginning.iter().zip(earlier.iter()).all(|(mine, theirs)| mine.is_same(theirs))
        {
            return added.to_vec();
        }
        let is_new = |message: &&Message| !earlier.iter().any(|known| known.is_same(message));
        self.iter().filter(is_new).cloned().collect()
    }

    /// Returns the system messages and the other messages, both in order.
    #[must_use]
    pub fn split_system(&self) -> (Vec<Message>, Vec<Message>) {
        self.iter().cloned().partition(|message| message.role() == Role::System)
    }
}

impl Deref for MessageList {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.0
    }
}

impl Extend<Message> for MessageList {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        match Arc::get_mut(&mut self.0) {
            Some(own) => own.extend(messages),
            None => *self = self.iter().cloned().chain(messages).collect(),
        }
    }
}

impl FromIterator<Message> for MessageList {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

impl From<Vec<Message>> for MessageList {
    fn from(messages: Vec<Message>) -> Self {
        Self(Arc::new(messages))
    }
}

impl From<Message> for MessageList {
    fn from(message: Message) -> Self {
        vec![message].into()
    }
}

impl IntoIterator for MessageList {
    type Item = Message;
    type IntoIter = std::vec::IntoIter<Message>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
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
    }

    #[test]
    fn owned_list_iterates_from_front_to_back() {
        let list = MessageList::from(vec![Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let shared = list.clone();
        let messages: Vec<Message> = list.into_iter().collect();
        assert_eq!(messages, [Message::user("a"), Message::assistant("b"), Message::user("c")]);
        assert!(messages.iter().zip(&shared).all(|(owned, shared)| owned.is_same(shared)));
        assert_eq!(shared.into_iter().rev().map(|message| message.text()).collect::<String>(), "cba");
        assert_eq!(MessageList::default().into_iter().count(), 0);
    }

    #[test]
    fn additions_are_found_in_grown_and_rebuilt_lists() {
        let mut earlier = MessageList::from(vec![Message::user("a"), Message::user("b")]);
        let mut grown = earlier.clone();
        assert_eq!(grown.added_since(&earlier), []);
        grown.push(Message::user("c"));
        assert_eq!(grown.added_since(&earlier), [Message::user("c")]);
        assert_eq!(grown.added_since(&MessageList::default()).len(), 3);
        let mut rebuilt = MessageList::from(vec![Message::system("new")]);
        rebuilt.extend(earlier.iter().cloned());
        assert_eq!(rebuilt.added_since(&earlier), [Message::system("new")]);
        earlier.push(Message::user("other"));
        assert_eq!(grown.added_since(&earlier), [Message::user("c")]);
    }

    #[test]
    fn it_survives_a_round_trip_through_json() {
        let list = MessageList::from(vec![Message::system("s"), Message::user("u").ephemeral()]);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<MessageList>(&json).unwrap(), list);
    }
}
