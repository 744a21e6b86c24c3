//! `ChatMemoryAdvisor::turns` and `TurnPage`: the turns of a conversation in pages, for people.

use std::iter;
use std::num::NonZeroUsize;

use advisor_core::{ConversationKey, Message, Result, Role, TurnEnd, TurnId};
use conversation_store::{Entry, EntryId, ReadRange, Snapshot, Version, last_end, same_turn};

use crate::ChatMemoryAdvisor;
use crate::conversation::unfinished::{UnfinishedTurn, end_last_turn, end_of, ends_running, round_of_calls};
use crate::settings::Settings;
use crate::transcript::repair::{
    Place, Repair, answer_in, answers_to_earlier_calls, ends_waiting, is_answer, waits_for_caller,
};

/// A page of the turns of a conversation, from [`ChatMemoryAdvisor::turns`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnPage {
    /// The turns, oldest first.
    pub turns: Vec<TurnMessages>,
    /// The tip of the page before this one; `None` if the page begins with the first turn.
    pub before: Option<EntryId>,
}

/// The messages of one turn, repaired.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TurnMessages {
    /// The turn.
    pub turn: TurnId,
    /// At least one message. The first ones may be results for calls of the turn before.
    pub messages: Vec<Message>,
    /// The results among the first messages that the turn before has stored. It ran or refused these calls, beside those
    /// that waited.
    pub earlier_results: Vec<Message>,
    /// Whether memory has added the last message, since the turn ended without an answer.
    pub has_added_answer: bool,
    /// The end of the turn; `None` while it runs in this process.
    pub end: Option<TurnEnd>,
    /// The round of the turn's last answer, if it is stored. With the positions of that answer's calls, it gives their
    /// [`CallKey`](advisor_core::CallKey)s.
    pub last_round: Option<u32>,
    /// The tip of the page before this turn, if a page can begin with it.
    before: Option<EntryId>,
}

impl ChatMemoryAdvisor {
    /// Returns a page of turns, to show a conversation to people. Window and summaries do not apply, so all pages
    /// together have every message. A display leaves out those that are
    /// [hidden](advisor_core::Message::is_hidden).
    ///
    /// Without a `tip`, it is the newest page. With the [`before`](TurnPage::before) of a page, it is the page before
    /// that one. Any other entry is accepted as a `tip`, too: the page then ends with it.
    ///
    /// The messages are repaired as those of [`transcript`](Self::transcript): a turn that runs in this process has its
    /// messages so far, and one that was dropped, or runs elsewhere, appears as if it had been interrupted now. But
    /// calls for which the conversation waits have no result, until the next turn begins. Rolled-back turns and turns without messages are left out. A page has at most `limit` turns. It
    /// has more only if they answer calls of one another, since those are not separated. It is empty only if no turn
    /// comes before it.
    ///
    /// # Cost
    /// The newest page reads the last `limit` turns, and more only if none of them can begin a page. Older pages are
    /// read with [`load_branch`](conversation_store::ConversationStore::load_branch). A store that keeps its default
    /// implementation reads the whole log for each of them.
    ///
    /// # Errors
    /// - [`Store`](advisor_core::ErrorKind::Store) if the conversation cannot be loaded.
    /// - [`Configuration`](advisor_core::ErrorKind::Configuration) if it has no entry `tip`, such as after it was
    ///   deleted.
    ///
    /// # Example
    /// ```
    /// use std::num::NonZeroUsize;
    /// use advisor_core::{ChatClient, ConversationKey};
    /// use advisor_testkit::{Answer, ScriptedModel};
    /// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, Window};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_window(Window::Turns(1));
    /// let model = ScriptedModel::new(["One.", "Two.", "Three."].map(Answer::from_text));
    /// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
    /// for _ in 0..3 {
    ///     client.prompt().user("Count on.").conversation("c").call().await?;
    /// }
    ///
    /// let (key, limit) = (ConversationKey::new("c")?, NonZeroUsize::MIN);
    /// let mut page = memory.turns(&key, None, limit).await?;
    /// assert_eq!(page.turns[0].messages[1].text(), "Three.");
    /// while let Some(tip) = page.before {
    ///     page = memory.turns(&key, Some(tip), limit).await?;
    /// }
    /// assert_eq!(page.turns[0].messages[1].text(), "One.");
    /// # Ok(()) }
    /// ```
    pub async fn turns(
        &self,
        key: &ConversationKey,
        tip: Option<EntryId>,
        limit: NonZeroUsize,
    ) -> Result<TurnPage> {
        let Settings { store, registry, .. } = self.settings();
        // The shown text of a turn belongs after its last entry, which the newest page ends with.
        let unfinished = if tip.is_none() { registry.unfinished_in(key) } else { Vec::new() };
        let running = || registry.running_in(key).filter(|_| tip.is_none());
        // A turn may begin or end while the store is read.
        let before = running();
        let see = |snapshot: Snapshot| {
            let running: Vec<_> = before.clone().into_iter().chain(running()).collect();
            let page = TurnPage::new(snapshot, (&unfinished, &running), limit);
            let is_enough = !page.turns.is_empty();
            (page, is_enough)
        };
        registry.load(&**store, key, tip, ReadRange::LastTurns(limit.get()), see).await
    }
}

impl TurnPage {
    /// Builds the page that ends with a snapshot of whole turns, of which some are unfinished or run.
    fn new(
        snapshot: Snapshot,
        (unfinished, running): (&[UnfinishedTurn], &[TurnId]),
        limit: NonZeroUsize,
    ) -> Self {
        let is_whole = snapshot.is_whole();
        let mut log = snapshot.entries;
        let is_newest = log.last().is_some_and(|last| Version(last.seq) == snapshot.version);
        let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
        let runs = ends_running(last, running, unfinished);
        let stays_open = runs || (is_newest && waits_for_caller(last, &end_of(last, unfinished)));
        if !stays_open {
            end_last_turn(&mut log, unfinished);
        }
        let finish = match is_newest && ends_waiting(&log) {
            _ if runs => Repair::finish_so_far,
            true => Repair::finish_waiting,
            false => Repair::finish,
        };
        // The turns whose calls these may answer were not read.
        let cut = if is_whole { 0 } else { answers_to_earlier_calls(log.chunk_by(same_turn)) };
        let log = log.get(cut..).unwrap_or_default();
        let before = log.first().map(Entry::follows).filter(|before| *before != EntryId::BEGINNING);
        let mut turns = 0_usize;
        Self { turns: turns_of(log, finish), before }.keep_newest_while(|_| {
            turns = turns.saturating_add(1);
            turns <= limit.get()
        })
    }

    /// Keeps the newest turns, as long as `keep` holds, and leaves out the others: such as to bound the bytes of a
    /// page.
    ///
    /// `keep` gets one turn after the other, the newest first, until it refuses one. The newest turn is kept in any
    /// case. A turn that answers calls of the one before it is kept or left out together with that one.
    #[must_use]
    pub fn keep_newest_while(mut self, mut keep: impl FnMut(&TurnMessages) -> bool) -> Self {
        let (mut first, mut fits) = (None, true);
        for (place, turn) in self.turns.iter().enumerate().rev() {
            fits = fits && keep(turn);
            if !fits && first.is_some() {
                break;
            }
            if let Some(before) = turn.before {
                first = Some((place, before));
            }
        }
        if let Some((place, before)) = first.filter(|(place, _)| *place > 0) {
            self.turns.drain(..place);
            self.before = Some(before);
        }
        self
    }
}

impl TurnMessages {
    /// Creates the turn of these entries with its repaired messages; `None` without any. `before` has the entries of the
    /// turn before, if the turn answers calls of that one.
    fn new(entries: &[Entry], before: &[Entry], messages: Vec<Message>) -> Option<Self> {
        let (first, last) = (entries.first()?, messages.last()?);
        let is_stored = entries.iter().any(|entry| entry.kind.as_message() == Some(last));
        Some(Self {
            turn: first.turn.clone(),
            has_added_answer: is_answer(last) && !is_stored,
            earlier_results: earlier_results(before, &messages),
            messages,
            end: last_end(entries).cloned(),
            last_round: round_of_calls(entries),
            before: None,
        })
    }
}

/// Returns the turns of a log that have messages. `finish` ends the last one.
fn turns_of(log: &[Entry], finish: fn(Repair) -> Vec<Vec<Message>>) -> Vec<TurnMessages> {
    let mut repair = Repair::new();
    let places = log.chunk_by(same_turn).filter_map(|turn| Some((turn, repair.take_turn(turn)?)));
    let places: Vec<_> = places.collect();
    let pieces = finish(repair);
    // The turns of one piece answer calls of one another.
    let turns_of_piece = |places: &[(&[Entry], Place)]| {
        let messages = places.first().and_then(|(_, place)| pieces.get(place.piece));
        let messages = messages.map(Vec::as_slice).unwrap_or_default();
        let ends = places.iter().skip(1).map(|(_, next)| next.message).chain([messages.len()]);
        let before = iter::once([].as_slice()).chain(places.iter().map(|(entries, _)| *entries));
        let turns = places.iter().zip(before).zip(ends).filter_map(|(((entries, place), before), end)| {
            TurnMessages::new(entries, before, messages.get(place.message..end)?.to_vec())
        });
        let mut turns: Vec<_> = turns.collect();
        if let Some(turn) = turns.first_mut() {
            turn.before = places.first().and_then(|(entries, _)| entries.first()).map(Entry::follows);
        }
        turns
    };
    places.chunk_by(|(_, one), (_, next)| one.piece == next.piece).flat_map(turns_of_piece).collect()
}

/// Returns those results at the beginning of a turn that the turn before has stored behind its last answer.
fn earlier_results(before: &[Entry], messages: &[Message]) -> Vec<Message> {
    let stored = before.iter().rev().take_while(|entry| answer_in(entry).is_none());
    let stored: Vec<_> = stored.filter_map(|entry| entry.kind.as_message()).collect();
    let results = messages.iter().take_while(|message| message.role() == Role::Tool);
    results.filter(|result| stored.contains(result)).cloned().collect()
}

#[cfg(test)]
mod tests;
