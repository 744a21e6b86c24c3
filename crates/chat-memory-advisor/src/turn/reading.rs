//! `Reading` and `Registry::load`: the range of a conversation to read, enlarged until it suffices; `find_in_log`, a
//! search by pages.
//!
//! Memory reads when a turn begins, and extends its own copy from then on. It reads more only if the window has room or no
//! summary covers the rest, if the input answers a call outside the window, if a turn of the same id is further back, or if
//! the conversation has changed meanwhile.

use advisor_core::{ConversationKey, Message, TurnId};

use crate::Window;
use crate::conversation::Registry;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::transcript::fill::Filled;
use crate::transcript::repair::{Pieces, Repair};
use crate::transcript::summary::{Pending, after, last_summary, message_of};
use crate::transcript::whole_turns::whole_turns;
use crate::transcript::window::Measure;
use crate::turn::closing_entries::end_last_turn;
use crate::turn::start_plan::{LoadedConversation, StartOutcome, StartPlan};
use conversation_store::{
    ConversationStore, Entry, EntryId, EntryKind, ReadRange, Snapshot, StoreError, same_turn,
};

/// A read of the end of a conversation: one range, unless the result lacks messages that are sent.
///
/// The code that plans the messages also checks whether the result suffices, so the two always agree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    measure: &'a Measure,
    /// The turn that is about to run, if any, and its input.
    turn: Option<(&'a TurnId, &'a [Message])>,
    /// The turns whose end is not written yet.
    unfinished: &'a [UnfinishedTurn],
}

/// The number of turns that are read first if their size is unknown.
const FIRST_TURNS: usize = 16;

/// The number of entries that are searched at once.
const PAGE: usize = 256;

/// The factor by which a read grows if it does not show enough.
pub(crate) const GROWTH: usize = 4;

impl<'a> Reading<'a> {
    /// Plans a read for an unknown next turn.
    pub(crate) fn new(measure: &'a Measure) -> Self {
        Self { measure, turn: None, unfinished: &[] }
    }

    /// Sets the turn that is about to run, and its input.
    pub(crate) fn before(self, turn: &'a TurnId, input: &'a [Message]) -> Self {
        Self { turn: Some((turn, input)), ..self }
    }

    /// Sets the turns that are still to be closed.
    pub(crate) fn beside<'b>(&self, unfinished: &'b [UnfinishedTurn]) -> Reading<'b>
    where
        'a: 'b,
    {
        Reading { unfinished, ..*self }
    }

    /// Returns the range that is read first.
    ///
    /// An ordinary turn has one entry that is no message, and at most one more for each result: the start of its
    /// call. Those are fewer than its messages, so twice as many entries hold the messages of a window.
    pub(crate) fn first_range(&self) -> ReadRange {
        if let Some(summarizer) = &self.measure.summarizer {
            return ReadRange::LastTurns(summarizer.turns_to_read());
        }
        match self.measure.window {
            Window::All => ReadRange::All,
            Window::Messages(count) => ReadRange::LastEntries(count.saturating_mul(2)),
            Window::Turns(count) => ReadRange::LastTurns(count),
            Window::Tokens(_) => ReadRange::LastTurns(FIRST_TURNS),
        }
    }

    /// Returns the next larger range, if this one does not show enough.
    pub(crate) fn larger_range(&self, range: ReadRange, snapshot: &Snapshot) -> Option<ReadRange> {
        let larger = match range {
            ReadRange::LastEntries(count) => ReadRange::LastEntries(count.saturating_mul(GROWTH)),
            ReadRange::LastTurns(count) => ReadRange::LastTurns(count.saturating_mul(GROWTH)),
            // Everything is read, or the range is of a newer kind.
            _ => return None,
        };
        // Damaged data may lack their beginning, so a range may not grow until the first entry is read.
        (larger != range && !self.is_enough(snapshot)).then_some(larger)
    }

    /// Checks whether nothing that a snapshot leaves out would be sent.
    fn is_enough(&self, snapshot: &Snapshot) -> bool {
        let Some(first) = snapshot.entries.first().filter(|first| !first.is_first()) else { return true };
        if self.measure.summarizer.is_some() {
            return last_summary(&snapshot.entries).is_some_and(|summary| summary.until >= first.seq);
        }
        let snapshot = snapshot.clone();
        let Some((turn, input)) = self.turn else {
            return messages_before_next_turn(snapshot, None, self.unfinished, &[], self.measure).1.full;
        };
        let unfinished = self.unfinished.to_vec();
        let loaded = LoadedConversation { snapshot, parent: None, unfinished, summary: None };
        match StartPlan::plan(turn, input.to_vec(), loaded, self.measure) {
            Ok(StartOutcome::Asking(plan)) => plan.fitted.full,
            Ok(StartOutcome::Answered(_)) => true,
            // The unread part may hold the turn's answer.
            Err(_) => false,
        }
    }
}

impl Registry {
    /// Reads enough of a branch to fill the window: of the branch up to `tip`, or of the one written last. Reads
    /// the whole log if an unfinished turn has an end that replaces one in the log.
    pub(crate) async fn load(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        tip: Option<EntryId>,
        reading: &Reading<'_>,
    ) -> Result<Snapshot, StoreError> {
        let mut unfinished = self.unfinished.turns_in(key);
        let overridden = unfinished.iter().any(UnfinishedTurn::overrides);
        // The shown text of a turn does not belong on a branch that cuts the turn.
        unfinished.retain(|_| tip.is_none());
        let reading = reading.beside(&unfinished);
        let mut range = if overridden { ReadRange::All } else { reading.first_range() };
        loop {
            let snapshot = match tip {
                None => store.load(key, range).await?,
                Some(tip) => store.load_branch(key, tip, range).await?,
            };
            match reading.larger_range(range, &snapshot) {
                Some(larger) => range = larger,
                None => {
                    self.damaged.warn(key, &snapshot);
                    return Ok(snapshot);
                }
            }
        }
    }
}

/// Searches the log after an entry, on all branches.
pub(crate) async fn find_in_log<T>(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    mut after: EntryId,
    find: impl Fn(&Entry) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    loop {
        let page = store.read(key, after, PAGE).await?;
        let (found, last) = (page.iter().find_map(&find), page.get(PAGE - 1));
        match last.filter(|_| found.is_none()) {
            Some(last) => after = EntryId::new(last.seq),
            None => return Ok(found),
        }
    }
}

/// Returns the messages before an unknown next turn: the summary, and the messages after it that fit. A turn that is
/// running has its messages so far.
pub(crate) fn messages_before_next_turn(
    snapshot: Snapshot,
    pending: Option<&Pending>,
    unfinished: &[UnfinishedTurn],
    running: &[TurnId],
    measure: &Measure,
) -> (Option<Message>, Filled) {
    let (mut log, texts) = (whole_turns(snapshot), &*measure.texts);
    let runs = ends_running(&log, running, unfinished);
    if !runs {
        end_last_turn(&mut log, unfinished, texts);
    }
    let summary = measure.summary(&log, pending);
    let repair = Repair::from_log(after(&log, summary), texts);
    let filled = if runs {
        let Pieces { earlier, running } = repair.finish_running();
        let mut filled = measure.fill(&earlier, &running);
        filled.turns.push(running);
        filled
    } else {
        measure.fill(&repair.finish(), &[])
    };
    (summary.map(|summary| message_of(summary, texts)), filled)
}

/// Checks whether the last turn of a log is one of those that run. One whose earlier run is unfinished is only about to
/// run again: until its log shows that, what that run showed counts.
pub(crate) fn ends_running(log: &[Entry], running: &[TurnId], unfinished: &[UnfinishedTurn]) -> bool {
    let entries = log.chunk_by(same_turn).next_back().unwrap_or_default();
    entries.last().is_some_and(|last| {
        running.contains(&last.turn)
            && !matches!(last.kind, EntryKind::TurnEnded(_))
            && !unfinished.iter().any(|known| known.turn == last.turn && known.is_last_to_run(entries))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnOverflow;
    use crate::test_logs::{answer, completed, log, turn, user};
    use crate::transcript::summarizer::tests::summarizer;
    use advisor_core::TurnEnd;
    use conversation_store::{Batch, BatchKey, InMemoryStore, NewEntry, Summary, Version};
    use std::sync::Arc;

    #[test]
    fn first_read_is_about_window_size() {
        let range = |window: Window| Reading::new(&window.into()).first_range();
        assert_eq!(range(Window::All), ReadRange::All);
        assert_eq!(range(Window::Messages(3)), ReadRange::LastEntries(6));
        assert_eq!(range(Window::Turns(3)), ReadRange::LastTurns(3));
        assert_eq!(range(Window::Tokens(3)), ReadRange::LastTurns(16));
    }

    fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
        (name, vec![user(name).into(), answer("ok").into(), completed()])
    }

    /// Creates a window of tokens that counts each message as two.
    fn tokens(limit: usize) -> Measure {
        Measure { counter: Arc::new(|_: &Message| 2_usize), ..Window::Tokens(limit).into() }
    }

    #[test]
    fn reading_continues_while_window_may_have_room() {
        let log = log(&["a", "b", "c"].map(plain));
        let next = |measure: &Measure, range| {
            Reading::new(measure).larger_range(range, &Snapshot::from_log(&log, range))
        };
        let more = Some(ReadRange::LastTurns(8));
        assert_eq!(next(&tokens(5), ReadRange::LastTurns(2)), more, "of two turns, one is known to be whole");
        assert_eq!(next(&tokens(4), ReadRange::LastTurns(2)), more, "a message may take no room");
        assert_eq!(next(&tokens(3), ReadRange::LastTurns(2)), None, "it is full");
        assert_eq!(next(&tokens(99), ReadRange::LastTurns(3)), None, "there is no more");
        assert_eq!(
            next(&Window::Messages(9).into(), ReadRange::LastEntries(7)),
            Some(ReadRange::LastEntries(28))
        );
        assert_eq!(next(&Window::Messages(4).into(), ReadRange::LastEntries(7)), None);
        assert_eq!(next(&Window::Turns(9).into(), ReadRange::LastTurns(2)), more);
        assert_eq!(next(&Window::Turns(2).into(), ReadRange::LastTurns(2)), None);
    }

    #[test]
    fn input_and_stored_entries_of_turn_take_room() {
        let mut turns = ["a", "b", "c"].map(plain);
        turns[2].1.truncate(2);
        let log = log(&turns);
        let next = |name: &str, input: &[Message]| {
            let (measure, turn) = (tokens(5), turn(name));
            let range = ReadRange::LastTurns(2);
            Reading::new(&measure)
                .before(&turn, input)
                .larger_range(range, &Snapshot::from_log(&log, range))
                .is_some()
        };
        assert!(next("new", &[]) && !next("new", &[user("x")]));
        assert!(next("c", &[user("c")]), "the turn before it is not shown");
    }

    #[tokio::test]
    async fn search_of_log_reads_all_pages() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let entries =
            (0..2 * PAGE + 1).map(|number| NewEntry::new(turn("t"), user(&number.to_string()).into()));
        let batch = Batch::new(BatchKey::for_input(turn("t")), entries.collect());
        store.append(&key, Version::new(0), batch).await.unwrap();
        let first_after = |after: u64, least: u64| {
            find_in_log(&store, &key, EntryId::new(after), move |entry| {
                Some(entry.seq).filter(|seq| *seq >= least)
            })
        };
        let all = 2 * PAGE as u64 + 1;
        assert_eq!(first_after(0, all).await.unwrap(), Some(all), "it is on the third page");
        assert_eq!(first_after(3, 1).await.unwrap(), Some(4), "the first one behind the given entry");
        assert_eq!(first_after(0, all + 1).await.unwrap(), None);
        assert_eq!(first_after(PAGE as u64 + 1, all + 1).await.unwrap(), None, "the last page is full");
    }

    #[test]
    fn answered_turn_is_found_even_when_oversized() {
        let log = log(&["a", "b", "c"].map(plain));
        let (measure, range) =
            (Measure { on_overflow: OnOverflow::Refuse, ..tokens(1) }, ReadRange::LastTurns(2));
        let next = |name: &str| {
            let (turn, said) = (turn(name), [user(name)]);
            Reading::new(&measure).before(&turn, &said).larger_range(range, &Snapshot::from_log(&log, range))
        };
        assert_eq!((next("a"), next("c")), (Some(ReadRange::LastTurns(8)), None));
    }

    #[test]
    fn a_turn_that_went_on_since_it_stopped_runs() {
        let mut stopped = [("t", vec![user("u").into()])];
        let known = [UnfinishedTurn::new(turn("t"), Version::new(1), Vec::new())];
        let runs = |turns: &[(&'static str, Vec<EntryKind>)]| ends_running(&log(turns), &[turn("t")], &known);
        assert!(!runs(&stopped), "its next run has not begun");
        stopped[0].1.push(answer("a").into());
        assert!(runs(&stopped));
    }

    #[test]
    fn law_m7_unwritten_text_of_dropped_turn_takes_room() {
        let mut turns = ["a", "b", "c", "d"].map(plain);
        turns[3].1.truncate(1);
        let (log, range) = (log(&turns), ReadRange::LastTurns(3));
        let end = TurnEnd::Interrupted { partial: "so far".into() };
        let unfinished =
            [UnfinishedTurn { end, ..UnfinishedTurn::new(turn("d"), Version::new(10), Vec::new()) }];
        let counter = Arc::new(|message: &Message| message.text().len());
        let measure = Measure { counter, ..Window::Tokens(15).into() };
        let next =
            |reading: &Reading<'_>| reading.larger_range(range, &Snapshot::from_log(&log, range)).is_some();
        let (new, said) = (turn("new"), [user("v")]);
        for reading in [Reading::new(&measure), Reading::new(&measure).before(&new, &said)] {
            assert!(!next(&reading), "without a text it fits, and ends the window");
            assert!(next(&reading.beside(&unfinished)), "it does not fit at all, so turns before it may");
        }
    }

    #[test]
    fn reading_continues_until_summary_covers_read_entries() {
        let range = ReadRange::LastTurns(1);
        for (until, next) in [(3, Some(ReadRange::LastTurns(4))), (7, None)] {
            let summary = Summary::new(until, "they talked");
            let mut turns = ["a", "b", "c"].map(plain);
            turns[2].1.insert(1, EntryKind::Summary(summary));
            let measure = Measure { summarizer: Some(summarizer(1, 1)), ..Window::All.into() };
            assert_eq!(
                Reading::new(&measure).larger_range(range, &Snapshot::from_log(&log(&turns), range)),
                next
            );
        }
    }
}
