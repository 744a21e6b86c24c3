use advisor_core::{Message, TurnId};

use crate::repair::{Repair, answers_to_earlier_calls};
use crate::summary::{after, last_summary};
use crate::view::same_turn;
use crate::window::Measure;
use crate::{Entry, Snapshot, View, Window};

/// How far back a conversation is read: once, unless that does not show all that is sent.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    measure: &'a Measure,
    /// The turn that is about to run, if one is, and its input.
    turn: Option<(&'a TurnId, &'a [Message])>,
}

/// How many turns are read first where nobody knows how long they are.
const FIRST_TURNS: usize = 16;

/// How many times as much is read when a view does not show enough.
const GROWTH: usize = 4;

impl<'a> Reading<'a> {
    /// Reads what is sent before a turn of which nothing is known.
    pub(crate) fn of(measure: &'a Measure) -> Self {
        Self { measure, turn: None }
    }

    /// Reads what is sent before this turn, beside its input.
    pub(crate) fn before(self, turn: &'a TurnId, input: &'a [Message]) -> Self {
        Self { turn: Some((turn, input)), ..self }
    }

    /// What is read first.
    ///
    /// An ordinary turn has one entry that is no message, and at most one more for each result: the start of its call.
    /// Those are fewer than its messages, so twice as many entries hold the messages of a window.
    pub(crate) fn view(&self) -> View {
        if let Some(summarizer) = &self.measure.summarizer {
            return View::LastTurns(summarizer.view());
        }
        match self.measure.window {
            Window::All => View::All,
            Window::Messages(count) => View::LastEntries(count.saturating_mul(2)),
            Window::Turns(count) => View::LastTurns(count),
            Window::Tokens(_) => View::LastTurns(FIRST_TURNS),
        }
    }

    /// The next larger view, if this one does not show enough.
    pub(crate) fn view_after(&self, view: View, snapshot: &Snapshot) -> Option<View> {
        let larger = match view {
            View::LastEntries(count) => View::LastEntries(count.saturating_mul(GROWTH)),
            View::LastTurns(count) => View::LastTurns(count.saturating_mul(GROWTH)),
            View::All => return None,
        };
        (!self.is_enough(snapshot)).then_some(larger)
    }

    /// Whether nothing that a snapshot leaves out would be sent.
    fn is_enough(&self, snapshot: &Snapshot) -> bool {
        let Some(first) = snapshot.entries.first().filter(|first| !first.is_first()) else { return true };
        if self.measure.summarizer.is_some() {
            return last_summary(&snapshot.entries).is_some_and(|summary| summary.until >= first.seq);
        }
        let mut log = whole_turns(snapshot.clone());
        let mut running: Vec<_> = self.turn.map(|(_, input)| input.to_vec()).unwrap_or_default();
        let is_own = |entry: &Entry| self.turn.is_some_and(|(turn, _)| entry.turn == *turn);
        if let Some(own) = log.iter().position(is_own) {
            running =
                log.split_off(own).iter().filter_map(|entry| entry.kind.as_message()).cloned().collect();
        }
        self.measure.fill(&Repair::of(after(&log, None), &self.measure.texts).finish(), &running).full
    }
}

/// What is read of a conversation, without the turns whose beginning is not.
pub(crate) fn whole_turns(snapshot: Snapshot) -> Vec<Entry> {
    let open = snapshot.open_turn.is_some();
    let mut log = snapshot.into_entries();
    if log.first().is_none_or(Entry::is_first) {
        return log;
    }
    let mut turns = log.chunk_by(same_turn);
    if open {
        // An open turn is always read whole.
        turns.next_back();
    }
    let cut = turns.next().map_or(0, <[Entry]>::len);
    let answers = answers_to_earlier_calls(turns);
    log.split_off(cut + answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{answer, completed, log, user};
    use crate::summary::tests::summarizer;
    use crate::{EntryKind, Summary};
    use std::sync::Arc;

    #[test]
    fn what_is_read_first_is_about_what_the_window_holds() {
        let view = |window: Window| Reading::of(&window.into()).view();
        assert_eq!(view(Window::All), View::All);
        assert_eq!(view(Window::Messages(3)), View::LastEntries(6));
        assert_eq!(view(Window::Turns(3)), View::LastTurns(3));
        assert_eq!(view(Window::Tokens(3)), View::LastTurns(16));
    }

    fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
        (name, vec![user(name).into(), answer("ok").into(), completed()])
    }

    /// Counts each message as two tokens.
    fn tokens(limit: usize) -> Measure {
        Measure { counter: Arc::new(|_: &Message| 2_usize), ..Window::Tokens(limit).into() }
    }

    #[test]
    fn more_is_read_while_the_window_may_have_room() {
        let log = log(&["a", "b", "c"].map(plain));
        let next = |measure: &Measure, view| Reading::of(measure).view_after(view, &Snapshot::of(&log, view));
        let more = Some(View::LastTurns(8));
        assert_eq!(next(&tokens(5), View::LastTurns(2)), more, "of two turns, one is known to be whole");
        assert_eq!(next(&tokens(4), View::LastTurns(2)), more, "a message may take no room");
        assert_eq!(next(&tokens(3), View::LastTurns(2)), None, "it is full");
        assert_eq!(next(&tokens(99), View::LastTurns(3)), None, "there is no more");
        assert_eq!(next(&Window::Messages(9).into(), View::LastEntries(7)), Some(View::LastEntries(28)));
        assert_eq!(next(&Window::Messages(4).into(), View::LastEntries(7)), None);
        assert_eq!(next(&Window::Turns(9).into(), View::LastTurns(2)), more);
        assert_eq!(next(&Window::Turns(2).into(), View::LastTurns(2)), None);
    }

    #[test]
    fn the_input_of_the_turn_and_what_is_stored_of_it_take_room() {
        let log = log(&["a", "b", "c"].map(plain));
        let next = |turn: &str, input: &[Message]| {
            let (measure, turn) = (tokens(5), crate::logs::turn(turn));
            let view = View::LastTurns(2);
            Reading::of(&measure).before(&turn, input).view_after(view, &Snapshot::of(&log, view)).is_some()
        };
        assert!(next("new", &[]) && !next("new", &[user("x")]));
        assert!(next("c", &[user("c")]), "the turn before it is not shown");
    }

    #[test]
    fn more_is_read_until_the_summary_tells_of_what_was_read() {
        let view = View::LastTurns(1);
        for (until, next) in [(3, Some(View::LastTurns(4))), (7, None)] {
            let summary = Summary { until, text: "they talked".into() };
            let mut turns = ["a", "b", "c"].map(plain);
            turns[2].1.insert(1, EntryKind::Summary(summary));
            let measure = Measure { summarizer: Some(summarizer(1, 1)), ..Window::All.into() };
            assert_eq!(Reading::of(&measure).view_after(view, &Snapshot::of(&log(&turns), view)), next);
        }
    }
}
