//! `StoredPage`: a page of the turns of a conversation, read a few turns at a time, and the turn that runs. `written`: its
//! messages as JSON.

use std::io;
use std::num::{NonZeroU64, NonZeroUsize};

use advisor_core::{ConversationKey, Error, ErrorKind, TurnId};
use chat_memory_advisor::store::EntryId;
use chat_memory_advisor::{TurnMessages, TurnPage};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::ChatServer;
use crate::markdown::Room;
use crate::places::Place;
use crate::refusal::Refusal;
use crate::routes::conversations::shown::{ShownIds, pass_turn, shown_messages};
use crate::routes::page::events::View;

/// The turns of a conversation in one answer: usually, and at most.
const TURNS: NonZeroUsize = NonZeroUsize::new(50).unwrap();
const MOST_TURNS: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// The turns that the first read of a page has at most. Each further one has at most twice as many, until the page has its
/// turns or its bytes.
const FIRST_TURNS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const TWICE: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// A page of the stored turns of a conversation.
#[derive(Debug)]
pub(in crate::routes) struct StoredPage {
    pub(in crate::routes) page: TurnPage,
    /// The turn that runs, if the relay answers. Without it, messages can be read.
    pub(in crate::routes) running: Result<Option<TurnId>, Refusal>,
    /// The place of the request, for the work on the page.
    pub(in crate::routes) place: Place,
}

impl StoredPage {
    /// Reads the last turns of a conversation, or those before a later page, which has this `before`.
    ///
    /// # Errors
    /// If there is no such conversation, or no such page.
    pub(in crate::routes) async fn read(
        server: &ChatServer,
        key: &ConversationKey,
        before: Option<NonZeroU64>,
        limit: Option<NonZeroUsize>,
    ) -> Result<Self, Refusal> {
        let tip = before.map(|before| EntryId(before.get()));
        let limit = limit.map_or(TURNS, |limit| limit.min(MOST_TURNS));
        let page = Self::page_and_running(server, key, tip, limit).await?;
        if page.page.turns.is_empty() && tip.is_none() && !matches!(page.running, Ok(Some(_))) {
            return Err(Refusal::not_found("there is no such conversation"));
        }
        Ok(page)
    }

    async fn page_and_running(
        server: &ChatServer,
        key: &ConversationKey,
        tip: Option<EntryId>,
        limit: NonZeroUsize,
    ) -> Result<Self, Refusal> {
        let place = server.stored_reads.begin().await?;
        let turns = || newest_turns(server, key, tip, limit, &place);
        let running_before = server.turns.running(key).await;
        let page = turns().await?;
        let running_before = match running_before {
            Ok(running) => running,
            Err(error) => return Ok(Self { page, running: Err(error), place }),
        };
        let running = server.turns.running(key).await;
        // The messages may be those of a turn that has ended or begun since.
        let is_same = running.as_ref().is_ok_and(|running| *running == running_before);
        let page = if is_same { page } else { turns().await? };
        Ok(Self { page, running, place })
    }
}

/// Reads the newest turns, a few at a time, until there are `limit` of them or they have the bytes of a page.
async fn newest_turns(
    server: &ChatServer,
    key: &ConversationKey,
    tip: Option<EntryId>,
    limit: NonZeroUsize,
    place: &Place,
) -> Result<TurnPage, Refusal> {
    let (mut page, mut tip, mut bytes) = (TurnPage::default(), tip, 0_usize);
    let mut turns = FIRST_TURNS.min(limit);
    loop {
        let read = server.memory.turns(key, tip, turns).await;
        let read = read.map_err(|error| page_refusal(&error))?;
        let sized = place.work(move || {
            let size = read.turns.iter().map(|turn| json_size(&turn.messages)).sum::<usize>();
            (read, size)
        });
        let (mut read, size) = sized.await?;
        bytes = bytes.saturating_add(size);
        tip = read.before;
        read.turns.append(&mut page.turns);
        page = read;
        let left = NonZeroUsize::new(limit.get().saturating_sub(page.turns.len()));
        match left.filter(|_| tip.is_some() && bytes <= server.limits.page_bytes) {
            Some(left) => turns = turns.saturating_mul(TWICE).min(left),
            None => return Ok(page),
        }
    }
}

/// Leaves out the oldest turns of a page whose messages have more bytes than a page may have.
pub(in crate::routes) fn shortened(page: TurnPage, most: usize) -> TurnPage {
    let mut bytes = 0_usize;
    page.keep_newest_while(|turn| {
        bytes = bytes.saturating_add(json_size(&turn.messages));
        bytes <= most
    })
}

/// Returns the size of messages in bytes of JSON.
fn json_size(messages: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // A message is always JSON, and counting does not fail.
    drop(serde_json::to_writer(&mut counted, messages));
    counted.0
}

/// Counts the bytes that are written to it.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A page that does not exist is no failure of the server.
fn page_refusal(error: &Error) -> Refusal {
    match error.kind() {
        ErrorKind::Configuration => Refusal::not_found("the conversation has no such page"),
        _ => Refusal::from(error),
    }
}

/// Returns the messages of a page, oldest first, and the tip of the page before.
///
/// It writes the newest turns that have room, the newest one first, so that no more is made than is sent. The newest one is
/// on the page in any case; its texts stay plain if there is no room for their elements.
pub(super) fn written(page: TurnPage, view: View, most: usize) -> (Vec<Box<RawValue>>, Option<EntryId>) {
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
        let mut messages = messages_of(turn, view, ids.clone(), most);
        if newest_first.is_empty() && size(&messages) > left {
            messages = messages_of(turn, view, ids, 0);
        }
        bytes = bytes.saturating_add(size(&messages));
        newest_first.push(messages);
        bytes <= most
    });
    // Turns that stay together with the newest one.
    for turn in page.turns.iter().rev().skip(newest_first.len()) {
        newest_first.push(messages_of(turn, view, before_turns.pop().unwrap_or_default(), 0));
    }
    newest_first.truncate(page.turns.len());
    (newest_first.into_iter().rev().flatten().collect(), page.before)
}

/// Writes the messages of a turn, with at most this many bytes of elements.
fn messages_of(turn: &TurnMessages, view: View, mut ids: ShownIds, elements: usize) -> Vec<Box<RawValue>> {
    let mut room = Room::new(elements);
    // A message is always JSON.
    shown_messages(turn, view, &mut ids, &mut room).filter_map(|shown| to_raw_value(&shown).ok()).collect()
}

/// Returns the bytes of messages in a list.
fn size(messages: &[Box<RawValue>]) -> usize {
    messages.iter().map(|message| message.get().len() + 1).sum()
}
