//! `Window`, the size limit, and `Measure`, which applies window, counter, summaries and texts.

use std::fmt;
use std::sync::Arc;

use advisor_core::{Error, ErrorKind, Message, Result};

use crate::transcript::fill::{Filled, fill};
use crate::transcript::repair::{has_calls, is_answer};
use crate::transcript::shorten::{Measured, Placeholders};
use crate::transcript::summary::{Pending, last_summary};
use crate::{ApproximateTokens, MemoryTexts, OnOverflow, Summarizer, TokenCounter};
use conversation_store::{Entry, Summary};

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
/// fits, [`MESSAGE_LEFT_OUT`](crate::MESSAGE_LEFT_OUT) replaces them. It also replaces a final answer that is
/// larger than the space. A turn is left out if neither fits.
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

/// A window and its settings.
#[derive(Clone)]
pub(crate) struct Measure {
    pub(crate) window: Window,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) on_overflow: OnOverflow,
    pub(crate) summarizer: Option<Summarizer>,
    pub(crate) texts: Arc<MemoryTexts>,
}

/// The messages that are sent, without system messages.
#[derive(Debug)]
pub(crate) struct Fitted {
    /// The messages of the turns before the running one.
    pub(crate) earlier: Vec<Message>,
    pub(crate) running: Vec<Message>,
    /// Whether turns before the given ones would not be sent, with any content.
    pub(crate) full: bool,
}

impl Measure {
    /// Returns the summary to send: the last stored or pending one, if summaries are sent at all. A pending
    /// summary counts only if the last entry that it covers is on this branch.
    pub(crate) fn summary<'a>(&self, log: &'a [Entry], pending: Option<&'a Pending>) -> Option<&'a Summary> {
        self.summarizer.as_ref()?;
        let pending = pending.filter(|pending| pending.belongs_to(log)).map(|pending| &pending.summary);
        last_summary(log).into_iter().chain(pending).max_by_key(|summary| summary.until)
    }

    /// Checks whether the running turn may have to be shortened.
    pub(crate) fn bounds_running(&self) -> bool {
        let counts = matches!(self.window, Window::Messages(_) | Window::Tokens(_));
        counts && self.on_overflow != OnOverflow::Send
    }

    /// Returns the messages to send of the running turn and of the turns before it.
    ///
    /// # Errors
    /// If the running turn alone is too large and `on_overflow` does not allow it to be sent.
    pub(crate) fn fit(&self, earlier: &[Vec<Message>], mut running: Vec<Message>) -> Result<Fitted> {
        if let (true, Window::Messages(room) | Window::Tokens(room)) = (self.bounds_running(), self.window) {
            if self.on_overflow == OnOverflow::Compact {
                let stand_ins = Placeholders::from_texts(&self.texts);
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
        let filled = self.fill(earlier, &running);
        Ok(Fitted { earlier: filled.turns.concat(), running, full: filled.full })
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
        let (size, stand_ins) =
            (|message: &Message| self.size_of(message), Placeholders::from_texts(&self.texts));
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
        Self {
            window,
            counter: Arc::new(ApproximateTokens),
            on_overflow: OnOverflow::Send,
            summarizer: None,
            texts: Arc::default(),
        }
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt(f)
    }
}

#[cfg(test)]
mod tests;
