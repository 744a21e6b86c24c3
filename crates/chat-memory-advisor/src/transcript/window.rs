//! `Window`, the size limit, and `Measure`, which applies window, counter, summaries and texts.

use std::fmt;
use std::sync::Arc;

use advisor_core::{Error, ErrorKind, Message, Result};
use conversation_store::{Entry, ReadRange, Snapshot, Summary};

use crate::transcript::repair::{has_calls, is_answer};
use crate::transcript::shorten::{Form, Measured, stand_ins};
use crate::transcript::summary::{UnwrittenSummary, last_summary};
use crate::{ApproximateTokens, Summarizer, TokenCounter};

/// The part of a conversation that the model is sent: a view at reading time, nothing is ever removed.
///
/// The oldest messages are left out first, and a call and its results are never separated. The running turn is
/// sent whole unless [`OnOverflow`] says otherwise. Earlier turns fill the space beside it:
///
/// 1. The latest turns are sent whole, as many as fit.
/// 2. Of each turn before them, the user messages and the final answer are sent, without the rounds between.
/// 3. The space that is left goes to those rounds, the latest first.
///
/// If the user messages of one turn are larger than the space, the oldest of them are left out. If none of them
/// fits, a text that says so replaces them. It also replaces a final answer that is larger than the space. A turn is left out if neither fits.
///
/// What is sent begins with a message of the user, as some models demand, if the turns do. For that, the placeholder for the
/// question of the last answer may exceed the window, if nothing else before the running turn fits.
///
/// So the last final answer is sent if it fits beside the running turn. No turn, however large, keeps earlier
/// turns from being sent. A window of turns sends whole turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// The whole conversation.
    #[default]
    All,
    /// At most this many messages, including the input of the running turn. More are sent only if that input alone
    /// is longer, or for the placeholder in front.
    Messages(usize),
    /// At most this many turns, including the running one. Turns of which one answers the calls of the other count
    /// as one.
    Turns(usize),
    /// At most this many tokens, including the input of the running turn. More are sent only if that input alone
    /// is longer, or for the placeholder in front. The memory's [`TokenCounter`] counts them. System messages and tools are not counted.
    Tokens(usize),
}

/// The policy for a running turn that alone is larger than its memory's [window](crate::Window), through user
/// messages or tool results. The stored messages are the same under every policy.
///
/// Memory applies it before each request: inside the tool loop before each round, outside it once, when the turn
/// begins. [`Refuse`](Self::Refuse) and [`Compact`](Self::Compact) also select the earlier turns again, among those that
/// were read when the turn began: each request has as much of them as then fits beside the running turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnOverflow {
    /// Sends all of it.
    #[default]
    Send,
    /// Fails before the model is asked, with an error of kind
    /// [`ContextOverflow`](advisor_core::ErrorKind::ContextOverflow). If the turn is too large when it begins,
    /// nothing of it is stored. Results of approved calls, which have run, are stored with its input.
    Refuse,
    /// Leaves the oldest steps out of the request. A step is an answer with calls and their results. The last step
    /// and all messages outside of steps stay. If they are still too large, the turn fails as with
    /// [`Refuse`](Self::Refuse).
    Compact,
}

/// The number of turns that are read first if their size is unknown.
const FIRST_TURNS: usize = 16;

/// A window and its settings.
#[derive(Clone)]
pub(crate) struct Measure {
    pub(crate) window: Window,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) on_overflow: OnOverflow,
    pub(crate) summarizer: Option<Summarizer>,
}

/// The messages that a window sends of the turns before the running one.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    /// The turns, oldest first, each with the messages that are sent.
    pub(crate) turns: Vec<Vec<Message>>,
    /// Whether turns before these would not be sent, with any content.
    pub(crate) full: bool,
}

impl Measure {
    /// Returns the summary to send: the last stored or pending one, if summaries are sent at all. A pending
    /// summary counts only if the last entry that it covers is on this branch.
    pub(crate) fn summary<'a>(
        &self,
        log: &'a [Entry],
        pending: Option<&'a UnwrittenSummary>,
    ) -> Option<&'a Summary> {
        self.summarizer.as_ref()?;
        let pending = pending.filter(|pending| pending.belongs_to(log)).map(|pending| &pending.summary);
        last_summary(log).into_iter().chain(pending).max_by_key(|summary| summary.until)
    }

    /// Returns the range of a conversation that is read first. It has at least one entry, so that it can grow.
    ///
    /// An ordinary turn has one entry that is no message, and at most one more for each result: the start of its
    /// call. Those are fewer than its messages, so twice as many entries hold the messages of a window.
    pub(crate) fn first_range(&self) -> ReadRange {
        if let Some(summarizer) = &self.summarizer {
            return ReadRange::LastTurns(summarizer.turns_to_read());
        }
        match self.window {
            Window::All => ReadRange::All,
            Window::Messages(count) => ReadRange::LastEntries(count.saturating_mul(2).max(1)),
            Window::Turns(count) => ReadRange::LastTurns(count.max(1)),
            Window::Tokens(_) => ReadRange::LastTurns(FIRST_TURNS),
        }
    }

    /// Checks whether a snapshot has a summary that covers what it leaves out; `None` if no summaries are sent.
    pub(crate) fn is_covered(&self, snapshot: &Snapshot) -> Option<bool> {
        let (_, first) = self.summarizer.as_ref().zip(snapshot.entries.first())?;
        Some(last_summary(&snapshot.entries).is_some_and(|summary| summary.until >= first.seq))
    }

    /// Checks whether the running turn may have to be shortened.
    pub(crate) fn bounds_running(&self) -> bool {
        let counts = matches!(self.window, Window::Messages(_) | Window::Tokens(_));
        counts && self.on_overflow != OnOverflow::Send
    }

    /// Returns the messages to send of the turns before the running one, and of the running turn.
    ///
    /// # Errors
    /// If the running turn alone is too large and `on_overflow` does not allow it to be sent.
    pub(crate) fn fit(
        &self,
        earlier: &[Vec<Message>],
        mut running: Vec<Message>,
    ) -> Result<(Filled, Vec<Message>)> {
        if let (true, Window::Messages(room) | Window::Tokens(room)) = (self.bounds_running(), self.window) {
            if self.on_overflow == OnOverflow::Compact {
                let stand_ins = stand_ins();
                running = Measured::new(&running, |message| self.size_of(message), &stand_ins, has_calls)
                    .shortened(room);
            }
            if self.size(&running) > room {
                return Err(Error::new(
                    ErrorKind::ContextOverflow,
                    "the turn alone is larger than the window of its memory; widen the window, or shorten the input",
                ));
            }
        }
        Ok((self.fill(earlier, &running), running))
    }

    /// Returns the messages to send of the turns before the running one.
    pub(crate) fn fill(&self, earlier: &[Vec<Message>], running: &[Message]) -> Filled {
        let (count, least) = match self.window {
            Window::All => return Filled { turns: earlier.to_vec(), full: false },
            Window::Turns(count) => {
                let room = count.saturating_sub(1);
                let from = earlier.len().saturating_sub(room);
                let turns = earlier.get(from..).unwrap_or_default().to_vec();
                return Filled { full: turns.len() == room, turns };
            }
            Window::Messages(count) => (count, 1),
            Window::Tokens(count) => (count, 0),
        };
        let room = count.saturating_sub(self.size(running));
        let (size, stand_ins) = (|message: &Message| self.size_of(message), stand_ins());
        fill(earlier.iter().map(|turn| Measured::new(turn, size, &stand_ins, is_answer)), room, least)
    }

    fn size(&self, messages: &[Message]) -> usize {
        messages.iter().map(|message| self.size_of(message)).fold(0, usize::saturating_add)
    }

    fn size_of(&self, message: &Message) -> usize {
        match self.window {
            Window::Tokens(_) => self.counter.count(message),
            _ => 1,
        }
    }
}

impl From<Window> for Measure {
    fn from(window: Window) -> Self {
        Self { window, counter: Arc::new(ApproximateTokens), on_overflow: OnOverflow::Send, summarizer: None }
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt(f)
    }
}

/// Fills a window from the end; no message is smaller than `least`. A pure function.
///
/// - The latest turns are sent whole, as many as fit. Of older turns, the user messages and final answers are
///   sent.
/// - The whole `room` decides the form of an older turn, so the form does not depend on later turns. A turn is
///   skipped if no form of it fits into the whole room.
/// - The first turn that fits into the whole room, but not into the space left, ends the window.
/// - If nothing else of the past is sent, the placeholder for the question of a final answer takes no room.
/// - The space left at the end goes to the rounds that were left out, those of the latest turn first.
fn fill<'a>(turns: impl DoubleEndedIterator<Item = Measured<'a>>, room: usize, least: usize) -> Filled {
    let (mut left, mut full, mut whole) = (room, false, true);
    let mut sent: Vec<(Measured<'_>, Form)> = Vec::new();
    for turn in turns.rev() {
        whole &= turn.size_of(Form::Without(0)) <= left;
        let form = if whole { Some(Form::Without(0)) } else { turn.said(room) };
        let Some(form) = form else { continue };
        let (size, in_front) = (turn.size_of(form), form == Form::AnswerInFront);
        let fits = size <= left && (!in_front || sent.is_empty());
        if fits {
            left = left.saturating_sub(size);
            sent.push((turn, form));
        }
        full = in_front || !fits;
        if full {
            break;
        }
    }
    full |= left < least;
    for (turn, form) in &mut sent {
        if let Form::Without(1..) = form {
            let own = turn.size_of(*form).saturating_add(left);
            *form = turn.within(own);
            left = own.saturating_sub(turn.size_of(*form));
        }
    }
    Filled { turns: sent.iter().rev().map(|(turn, form)| turn.messages_of(*form)).collect(), full }
}

#[cfg(test)]
mod tests;
