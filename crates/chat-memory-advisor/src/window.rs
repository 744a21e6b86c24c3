use std::fmt;
use std::sync::Arc;

use advisor_core::{Error, ErrorKind, Message, Result};

use crate::compact::compact;
use crate::summary::{Pending, last_summary};
use crate::{ApproximateTokens, Entry, Snapshot, Summarizer, Summary, TokenCounter, View, WhenTooLarge};

/// How much of a conversation the model is sent: a view at reading time, nothing is ever removed.
///
/// Whole turns are left out, oldest first. A call and its results never part, and the turn that is
/// running stays whole unless [`WhenTooLarge`] says otherwise. Turns that were rolled back count towards what is looked through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// All of it.
    #[default]
    All,
    /// At most so many messages, those of the running turn's input included; more only if that alone is
    /// longer.
    Messages(usize),
    /// At most so many turns, the running one included. Turns of which one answers the calls of the other
    /// count as one.
    Turns(usize),
    /// At most so many tokens, those of the running turn's input included; more only if that alone is longer.
    /// The memory's [`TokenCounter`] counts them. System messages and tools are not counted.
    Tokens(usize),
}

/// A window and what it is measured with.
#[derive(Clone)]
pub(crate) struct Measure {
    pub(crate) window: Window,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) when_too_large: WhenTooLarge,
    pub(crate) summarizer: Option<Summarizer>,
}

/// How many turns are read first where nobody knows how long they are.
const FIRST_TURNS: usize = 16;

impl Measure {
    /// What has to be read so that everything that can be in the window is there, as far as that is known.
    ///
    /// An ordinary turn has one entry that is no message, and at most one more for each result: the start of its call.
    /// Those are fewer than its messages, so twice as many entries hold the messages. Where turns went on after their
    /// end there are more, and the view may be of fewer messages than would fit.
    pub(crate) fn view(&self) -> View {
        if let Some(summarizer) = &self.summarizer {
            return View::LastTurns(summarizer.view());
        }
        match self.window {
            Window::All => View::All,
            Window::Messages(count) => View::LastEntries(count.saturating_mul(2)),
            Window::Turns(count) => View::LastTurns(count),
            Window::Tokens(_) => View::LastTurns(FIRST_TURNS),
        }
    }

    /// The next larger view, if what this one showed may leave room in the window.
    pub(crate) fn view_after(&self, view: View, snapshot: &Snapshot) -> Option<View> {
        let View::LastTurns(count) = view else { return None };
        let larger = View::LastTurns(count.saturating_mul(4));
        let first = snapshot.entries.first().map_or(0, |entry| entry.seq);
        let begins = snapshot.entries.first().is_none_or(Entry::is_first);
        if self.summarizer.is_some() {
            let told = last_summary(&snapshot.entries).is_some_and(|summary| summary.until >= first);
            return (!begins && !told).then_some(larger);
        }
        let Window::Tokens(limit) = self.window else { return None };
        let tokens = snapshot.entries.iter().filter_map(|entry| entry.kind.as_message());
        let full = tokens.map(|message| self.counter.count(message)).sum::<usize>() > limit;
        (!begins && !full).then_some(larger)
    }

    /// The summary that is sent: the last one that is stored or waits to be, if summaries are sent at all. One that
    /// waits tells of this branch if the last entry that it tells of stands on it.
    pub(crate) fn summary<'a>(&self, log: &'a [Entry], pending: Option<&'a Pending>) -> Option<&'a Summary> {
        self.summarizer.as_ref()?;
        let pending = pending.filter(|pending| pending.belongs_to(log)).map(|pending| &pending.summary);
        last_summary(log).into_iter().chain(pending).max_by_key(|summary| summary.until)
    }

    /// Whether the running turn may have to be made smaller.
    pub(crate) fn bounds_running(&self) -> bool {
        let counts = matches!(self.window, Window::Messages(_) | Window::Tokens(_));
        counts && self.when_too_large != WhenTooLarge::Send
    }

    /// What is sent of these pieces, of which the last one is the running turn's.
    ///
    /// # Errors
    /// If that is too large by itself, and is not to be sent then.
    pub(crate) fn fit(&self, mut pieces: Vec<Vec<Message>>) -> Result<Vec<Vec<Message>>> {
        if let (true, Window::Messages(room) | Window::Tokens(room)) = (self.bounds_running(), self.window)
            && let Some(running) = pieces.last_mut()
        {
            if self.when_too_large == WhenTooLarge::Compact {
                *running = compact(std::mem::take(running), room, |part| self.size(part));
            }
            if self.size(running) > room {
                return Err(Error::new(
                    ErrorKind::ContextOverflow,
                    "the turn alone is larger than the window of its memory; widen the window, or say less",
                ));
            }
        }
        let from = self.first_kept(&pieces);
        Ok(pieces.split_off(from))
    }

    /// The first piece that stays; the last one is the running turn's.
    pub(crate) fn first_kept(&self, pieces: &[Vec<Message>]) -> usize {
        let (Window::Messages(room) | Window::Turns(room) | Window::Tokens(room)) = self.window else {
            return 0;
        };
        let Some((running, earlier)) = pieces.split_last() else { return 0 };
        let mut room = room.saturating_sub(self.size(running));
        let fits = |piece: &&Vec<Message>| match room.checked_sub(self.size(piece)) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        earlier.len() - earlier.iter().rev().take_while(fits).count()
    }

    fn size(&self, piece: &[Message]) -> usize {
        match self.window {
            Window::Turns(_) => 1,
            Window::Tokens(_) => piece.iter().map(|message| self.counter.count(message)).sum(),
            _ => piece.len(),
        }
    }
}

impl From<Window> for Measure {
    fn from(window: Window) -> Self {
        Self {
            window,
            counter: Arc::new(ApproximateTokens),
            when_too_large: WhenTooLarge::Send,
            summarizer: None,
        }
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryKind;
    use crate::logs::{answer, completed, log, user};
    use crate::summary::tests::summarizer;
    use proptest::prelude::*;

    fn pieces(lengths: &[usize]) -> Vec<Vec<Message>> {
        lengths.iter().map(|length| vec![Message::user("x"); *length]).collect()
    }

    type Size = fn(usize) -> usize;

    fn measures(count: usize) -> [(Measure, Size); 3] {
        let two = |_: &Message| 2_usize;
        let tokens = Measure { counter: Arc::new(two), ..Window::Tokens(count).into() };
        [
            (Window::Messages(count).into(), |length| length),
            (Window::Turns(count).into(), |_| 1),
            (tokens, |length| 2 * length),
        ]
    }

    #[test]
    fn what_is_read_first_is_about_what_the_window_holds() {
        let view = |window| Measure::from(window).view();
        assert_eq!(view(Window::All), View::All);
        assert_eq!(view(Window::Messages(3)), View::LastEntries(6));
        assert_eq!(view(Window::Turns(3)), View::LastTurns(3));
        assert_eq!(view(Window::Tokens(3)), View::LastTurns(16));
    }

    fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
        (name, vec![user(name).into(), answer("ok").into(), completed()])
    }

    #[test]
    fn more_is_read_while_the_window_may_have_room() {
        let log = log(&["a", "b", "c"].map(plain));
        let next = |measure: Measure, view| measure.view_after(view, &Snapshot::of(&log, view));
        let tokens = |limit| measures(limit).into_iter().last().unwrap().0;
        assert_eq!(next(tokens(8), View::LastTurns(2)), Some(View::LastTurns(8)));
        assert_eq!(next(tokens(7), View::LastTurns(2)), None, "it is full");
        assert_eq!(next(tokens(99), View::LastTurns(3)), None, "there is no more");
        assert_eq!(next(tokens(99), View::LastEntries(3)), None);
        assert_eq!(next(Window::Turns(9).into(), View::LastTurns(2)), None);
    }

    #[test]
    fn more_is_read_until_the_summary_tells_of_what_was_read() {
        let view = View::LastTurns(1);
        for (until, next) in [(3, Some(View::LastTurns(4))), (7, None)] {
            let summary = Summary { until, text: "they talked".into() };
            let mut turns = ["a", "b", "c"].map(plain);
            turns[2].1.insert(1, EntryKind::Summary(summary));
            let measure = Measure { summarizer: Some(summarizer(1, 1)), ..Window::All.into() };
            assert_eq!(measure.view_after(view, &Snapshot::of(&log(&turns), view)), next);
        }
    }

    #[test]
    fn a_running_turn_may_fill_the_window() {
        let measure =
            |count| Measure { when_too_large: WhenTooLarge::Refuse, ..Window::Messages(count).into() };
        assert_eq!(measure(3).fit(pieces(&[2, 3])).unwrap(), pieces(&[3]));
        assert_eq!(measure(2).fit(pieces(&[2, 3])).unwrap_err().kind(), ErrorKind::ContextOverflow);
    }

    proptest! {
        #[test]
        fn the_window_is_filled_from_the_end_and_never_cuts(
            lengths in prop::collection::vec(1..9_usize, 1..12),
            count in 0..40_usize,
        ) {
            for (measure, size) in measures(count) {
                let from = measure.first_kept(&pieces(&lengths));
                let kept: usize = lengths[from..].iter().map(|length| size(*length)).sum();
                prop_assert!(from < lengths.len(), "the running turn stays");
                prop_assert!(kept <= count || from == lengths.len() - 1);
                if from > 0 {
                    prop_assert!(kept + size(lengths[from - 1]) > count, "another turn would have fitted");
                }
            }
            prop_assert_eq!(Measure::from(Window::All).first_kept(&pieces(&lengths)), 0);
        }
    }
}
