use std::collections::HashMap;

use advisor_core::ConversationKey;

/// The model that answered a conversation last, for a bounded number of conversations.
///
/// There are two halves. If the newer one is full, it becomes the older one, whose conversations are forgotten.
#[derive(Debug, Default)]
pub(super) struct Sticky {
    newer: HashMap<ConversationKey, usize>,
    older: HashMap<ConversationKey, usize>,
}

impl Sticky {
    pub(super) fn of(&self, conversation: &ConversationKey) -> Option<usize> {
        self.newer.get(conversation).or_else(|| self.older.get(conversation)).copied()
    }

    /// Notes the route of a conversation; of at most `most` conversations.
    pub(super) fn note(&mut self, conversation: &ConversationKey, route: usize, most: usize) {
        if most == 0 {
            return;
        }
        if let Some(known) = self.newer.get_mut(conversation) {
            *known = route;
            return;
        }
        if self.newer.len() >= most.div_ceil(2) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(conversation.clone(), route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r1_known_conversations_are_bounded() {
        let key = |number: usize| ConversationKey::new(&format!("c{number}")).unwrap();
        let mut sticky = Sticky::default();
        for number in 0..100 {
            sticky.note(&key(number), number, 10);
            assert_eq!(sticky.of(&key(number)), Some(number));
            assert!(sticky.newer.len() + sticky.older.len() <= 10);
        }
        assert_eq!((sticky.of(&key(96)), sticky.of(&key(80))), (Some(96), None));
        let mut none = Sticky::default();
        none.note(&key(1), 1, 0);
        assert_eq!(none.of(&key(1)), None);
    }
}
