//! The messages of a page in JSON, within the bytes of a page.

use chat_memory_advisor::store::EntryId;
use chat_memory_advisor::{TurnMessages, TurnPage};
use serde_json::value::{RawValue, to_raw_value};

use super::shown::{pass_turn, shown_messages};
use super::shown_ids::ShownIds;
use crate::markdown::room::Room;
use crate::routes::view::View;

/// The messages of a page.
pub(super) struct WrittenPage {
    /// The messages, oldest first.
    pub(super) messages: Vec<Box<RawValue>>,
    /// The tip of the page before, if there is one.
    pub(super) before: Option<EntryId>,
}

impl WrittenPage {
    /// Writes the newest turns that have room, the newest one first, so that no more is made than is sent. The newest one is
    /// on the page in any case; its texts stay plain if there is no room for their elements.
    pub(super) fn new(page: TurnPage, view: View, most: usize) -> Self {
        let mut ids = ShownIds::default();
        let before_turn = |turn| {
            let before = ids.clone();
            pass_turn(turn, &mut ids);
            before
        };
        let mut before_turns: Vec<_> = page.turns.iter().map(before_turn).collect();
        let (mut newest_first, mut bytes) = (Vec::new(), 0_usize);
        let page = page.keep_newest_while(|turn| {
            let ids = before_turns.pop().unwrap_or_default();
            let left = most.saturating_sub(bytes);
            let mut messages = written(turn, view, ids.clone(), most);
            if newest_first.is_empty() && size(&messages) > left {
                messages = written(turn, view, ids, 0);
            }
            bytes = bytes.saturating_add(size(&messages));
            newest_first.push(messages);
            bytes <= most
        });
        // Turns that stay together with the newest one.
        for turn in page.turns.iter().rev().skip(newest_first.len()) {
            newest_first.push(written(turn, view, before_turns.pop().unwrap_or_default(), 0));
        }
        newest_first.truncate(page.turns.len());
        Self { messages: newest_first.into_iter().rev().flatten().collect(), before: page.before }
    }
}

/// Writes the messages of a turn, with at most this many bytes of elements.
fn written(turn: &TurnMessages, view: View, mut ids: ShownIds, elements: usize) -> Vec<Box<RawValue>> {
    let mut room = Room::new(elements);
    // A message is always JSON.
    shown_messages(turn, view, &mut ids, &mut room).filter_map(|shown| to_raw_value(&shown).ok()).collect()
}

/// Returns the bytes of messages in a list.
fn size(messages: &[Box<RawValue>]) -> usize {
    messages.iter().map(|message| message.get().len() + 1).sum()
}
