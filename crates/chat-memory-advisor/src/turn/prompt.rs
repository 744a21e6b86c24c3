//! `Prompt` and `Addition`: the messages sent in a turn, and the part still to store.

#![allow(clippy::mutable_key_type, reason = "a handle is compared by its address, which does not change")]

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use advisor_core::{CallStart, Message, MessageList, Result, Role};

use crate::transcript::repair::{OpenCalls, Pieces, results_first};
use crate::transcript::texts::NO_ANSWER;
use crate::transcript::window::{Filled, Measure};

/// The messages for the model in a turn: the view of the conversation, and the messages that the turn adds.
///
/// It only grows, so that round fifty costs as much as round one, unless the running turn is bounded.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    system: Vec<Message>,
    /// The message in place of the oldest turns.
    summary: Option<Message>,
    /// The number of messages after the summary that belong to turns before the running one. One list holds them
    /// all, so that a request shares it.
    earlier_count: usize,
    /// All messages of those turns, if the selection may change while the turn runs.
    past: Vec<Vec<Message>>,
    /// All messages that are or were in the list.
    seen: HashSet<Handle>,
    tail: Tail,
}

/// The part of the prompt that an addition replaces; cheap to clone.
#[derive(Debug, Clone)]
struct Tail {
    list: MessageList,
    /// The calls of the last answer. Their results enter the list once all of them are present.
    calls: OpenCalls,
    last_remembered: Option<Role>,
    /// Whether the model was asked and gave no answer that could be kept.
    unanswered: bool,
}

/// Messages that are new to a prompt. The prompt does not change before it takes them over.
#[derive(Debug)]
pub(crate) struct Addition {
    tail: Tail,
    seen: Vec<Handle>,
    /// The messages to be stored, in order.
    pub(crate) stored: Vec<Message>,
}

impl Prompt {
    /// Creates a prompt of the messages that fit of a conversation, after a summary, without open calls. Returns also
    /// whether turns before those would not be sent, with any content.
    ///
    /// # Errors
    /// Those of [`fit`](Self::fit).
    pub(crate) fn new(summary: Option<Message>, pieces: Pieces, measure: &Measure) -> Result<(Self, bool)> {
        let Pieces { earlier: mut past, running } = pieces;
        let (Filled { turns, full }, running) = measure.fit(&past, running)?;
        let earlier = turns.concat();
        past.retain(|_| measure.bounds_running());
        let messages = || earlier.iter().chain(&running);
        let seen = messages().cloned().map(Handle).collect();
        let last_remembered = messages().rev().find(|message| !message.is_ephemeral()).map(Message::role);
        let list = summary.iter().chain(messages()).cloned().collect();
        let tail = Tail { list, calls: OpenCalls::default(), last_remembered, unanswered: false };
        let earlier_count = earlier.len();
        Ok((Self { system: Vec::new(), summary, earlier_count, past, seen, tail }, full))
    }

    /// Fits the prompt into the window, if the running turn is bounded. Shortens the running turn, and selects the
    /// earlier messages that fit beside it.
    ///
    /// # Errors
    /// If the running turn is too large, and the policy does not allow it to be sent.
    pub(crate) fn fit(&mut self, measure: &Measure) -> Result<()> {
        if !measure.bounds_running() {
            return Ok(());
        }
        let head = self.system.len() + usize::from(self.summary.is_some());
        let running = self.tail.list.iter().skip(head + self.earlier_count).cloned().collect();
        let (Filled { turns, .. }, running) = measure.fit(&self.past, running)?;
        let earlier = turns.concat();
        let head = self.system.iter().cloned().chain(self.summary.clone());
        let list: MessageList = head.chain(earlier.iter().chain(&running).cloned()).collect();
        self.earlier_count = earlier.len();
        if list != self.tail.list {
            self.tail.list = list;
        }
        Ok(())
    }

    /// Returns an addition without messages.
    pub(crate) fn unchanged(&self) -> Addition {
        Addition { tail: self.tail.clone(), seen: Vec::new(), stored: Vec::new() }
    }

    /// Returns the new ones of these messages as an addition. Results come after their calls. Results that no open
    /// call waits for, empty answers and system messages are left out.
    pub(crate) fn add(&self, messages: impl IntoIterator<Item = Message>) -> Addition {
        self.add_again(messages.into_iter().filter(|message| !self.knows(message)))
    }

    /// Returns the same addition, including messages that are known: an answer can be taken up again.
    pub(crate) fn add_again(&self, messages: impl IntoIterator<Item = Message>) -> Addition {
        let mut addition = self.unchanged();
        results_first(messages.into_iter().collect()).into_iter().for_each(|message| addition.take(message));
        addition
    }

    /// Returns the calls of the last answer.
    pub(crate) fn calls(&self) -> &OpenCalls {
        &self.tail.calls
    }

    /// Checks whether this message, by identity, is or was in the prompt.
    pub(crate) fn knows(&self, message: &Message) -> bool {
        self.seen.contains(&Handle(message.clone()))
    }

    /// Notes that the loop continues with the last answer: its tools may start from now on.
    pub(crate) fn start_calls(&mut self) {
        self.tail.calls.start();
    }

    /// Notes that the turn has ended with an answer and leaves its calls to the caller.
    pub(crate) fn leave_calls(&mut self) {
        self.tail.calls.leave_to_caller();
    }

    /// Notes that the start of one of these calls is recorded.
    pub(crate) fn note_start(&mut self, start: &CallStart) {
        self.tail.calls.note_start(start);
    }

    /// Notes that the model is asked with the current messages.
    pub(crate) fn note_asked(&mut self) {
        self.tail.unanswered = true;
    }

    /// Applies an addition that is stored.
    pub(crate) fn apply(&mut self, addition: Addition) {
        self.seen.extend(addition.seen);
        self.tail = addition.tail;
    }

    /// Returns the whole prompt, with these system messages.
    pub(crate) fn messages(&mut self, system: Vec<Message>) -> MessageList {
        if system != self.system {
            let rest = self.tail.list.iter().filter(|message| message.role() != Role::System);
            self.tail.list = system.iter().chain(&self.summary).chain(rest).cloned().collect();
            self.system = system;
        }
        self.tail.list.clone()
    }
}

impl Addition {
    fn take(&mut self, message: Message) {
        match message.role() {
            Role::System => {}
            Role::Tool if !self.tail.calls.accept(&message) => {}
            Role::Tool => {
                self.note(&message);
                if !self.tail.calls.is_waiting() {
                    self.tail.list.extend(self.tail.calls.settle());
                }
            }
            _ if message.is_empty_answer() => self.tail.unanswered = true,
            role => {
                self.settle();
                let user_again = role == Role::User && self.tail.last_remembered == Some(Role::User);
                if user_again && self.tail.unanswered && !message.is_ephemeral() {
                    self.push(Message::assistant(NO_ANSWER));
                }
                self.push(message);
            }
        }
    }

    /// Notes that the model was asked and gave no answer that could be kept.
    pub(crate) fn note_empty_answer(&mut self) {
        self.tail.unanswered = true;
    }

    /// Adds error results for the calls that are still open.
    pub(crate) fn settle(&mut self) {
        for result in self.tail.calls.missing() {
            self.tail.calls.accept(&result);
            self.note(&result);
        }
        self.tail.list.extend(self.tail.calls.settle());
    }

    fn push(&mut self, message: Message) {
        self.note(&message);
        self.tail.calls = OpenCalls::from_message(&message).not_started();
        self.tail.list.push(message);
    }

    fn note(&mut self, message: &Message) {
        self.seen.push(Handle(message.clone()));
        if message.is_ephemeral() {
            return;
        }
        self.tail.last_remembered = Some(message.role());
        self.tail.unanswered = false;
        self.stored.push(message.clone());
    }
}

/// A message by identity: two messages with the same content are not equal.
///
/// By content, the second "go on" of a user would be lost, and a text that an advisor rewrote would be stored
/// again.
#[derive(Debug, Clone)]
struct Handle(Message);

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}

impl Eq for Handle {}

impl Hash for Handle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0.content()).hash(state);
    }
}

#[cfg(test)]
mod tests;
