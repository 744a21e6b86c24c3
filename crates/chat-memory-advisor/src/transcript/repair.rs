//! `repair` and `Repair`: a valid transcript from any log; `OpenCalls`, the calls of one answer and their results.

use std::ops::Range;

use advisor_core::{
    CallStart, Message, MessageContent, OUTCOME_UNKNOWN, Part, Role, Text, ToolCall, ToolResult, TurnEnd,
    VERIFY_BEFORE_RETRYING,
};
use conversation_store::{Entry, EntryId, EntryKind, Snapshot, last_end, same_turn};

use crate::INTERRUPTED;
use crate::transcript::texts::{
    CONTINUED_WITHOUT_RESULTS, MESSAGE_REFUSED, NO_ANSWER, NOT_RUN, NOT_STARTED, RESULT_REFUSED,
    after_interruption,
};

/// Returns the transcript of a log, which is valid for every log. A pure function.
///
/// - A rolled-back turn is left out.
/// - A call without a result gets an error result. It is [`VERIFY_BEFORE_RETRYING`](crate::VERIFY_BEFORE_RETRYING)
///   if the tool must not run twice and the start of the call is in the log. Otherwise it is
///   `not run: the conversation went on without it` if the turn completed, so that the call is client-side, else
///   [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN). The messages that begin the next turn may answer the calls that
///   end a turn.
/// - Results are in call order; the first one for a call counts. Results without a call, empty answers, system
///   messages and ephemeral messages are left out.
/// - Messages whose content the provider refused are replaced by texts that say so, so that they are not sent again.
///   They are those since the turn's last answer, and the turn is closed with `[no answer]`.
/// - A turn that failed, was interrupted or never ended is closed with the text that had been shown and
///   [`INTERRUPTED`](crate::INTERRUPTED). It stays as it is if its last message is an answer and nothing was shown
///   after it.
/// - A turn that completed without an answer is closed with `[no answer]`, or with
///   `[the conversation went on without these results]` if it has client-side calls.
///
/// So every turn ends with an answer, and no two user messages follow each other unless the log has them so within
/// one turn. A valid transcript stays as it is, and repairing twice changes nothing more.
///
/// # Example
/// ```
/// use advisor_core::{Message, TurnId};
/// use chat_memory_advisor::repair;
/// use conversation_store::{Entry, EntryKind};
///
/// let asked = EntryKind::Message(Message::user("Are you there?"));
/// let log = [Entry::new(1, TurnId::random(), asked)];
/// let messages = repair(&log);
/// assert_eq!(messages[1].text(), "[interrupted]");
/// ```
#[must_use]
pub fn repair(log: &[Entry]) -> Vec<Message> {
    Repair::from_log(log).finish().concat()
}

/// Returns the calls at the end of a turn's entries, with the results recorded there.
pub(crate) fn open_calls(turn: &[Entry]) -> OpenCalls {
    let mut calls = OpenCalls::default();
    for entry in turn {
        match &entry.kind {
            EntryKind::CallStarted(start) => calls.note_start(start),
            EntryKind::TurnEnded(TurnEnd::Completed(_)) => calls.leave_to_caller(),
            EntryKind::Message(message) if is_remembered(&message) => match message.role() {
                Role::Tool => {
                    calls.accept(message);
                }
                Role::Assistant if !message.is_empty_answer() => calls = OpenCalls::from_message(message),
                Role::User => calls = OpenCalls::default(),
                _ => {}
            },
            _ => {}
        }
    }
    calls
}

/// Checks whether a turn with this end waits for its caller, who may run its open calls. Those of a filtered or
/// truncated answer must not run.
pub(crate) fn waits_for_caller(turn: &[Entry], end: &TurnEnd) -> bool {
    matches!(end, TurnEnd::Completed(reason) if !reason.vetoes_calls()) && open_calls(turn).may_run()
}

/// Checks whether the last turn with messages waits for its caller.
pub(crate) fn ends_waiting(log: &[Entry]) -> bool {
    let last = log.chunk_by(same_turn).rfind(|turn| messages_in(turn).next().is_some()).unwrap_or_default();
    last_end(last).is_some_and(|end| waits_for_caller(last, end))
}

/// Counts the entries at the beginning of these turns that belong to calls of earlier turns. They end with the
/// last turn that begins with results, before any other turn that has messages.
pub(crate) fn answers_to_earlier_calls<'a>(turns: impl Iterator<Item = &'a [Entry]>) -> usize {
    let (mut seen, mut answers) = (0, 0);
    for turn in turns {
        seen += turn.len();
        let mut messages = messages_in(turn).peekable();
        if messages.peek().is_none() {
            continue;
        }
        if !leading(messages).any(|message| message.role() == Role::Tool) {
            break;
        }
        answers = seen;
    }
    answers
}

/// A transcript under construction: pieces that are each valid by themselves, oldest first.
///
/// A piece is a turn, or several if the calls of one are answered by the next.
#[derive(Debug)]
pub(crate) struct Repair {
    pieces: Vec<Vec<Message>>,
    /// Whether the messages are for the model, which is not sent what its provider refused.
    for_model: bool,
    /// The calls of the last answer.
    calls: OpenCalls,
    /// Whether something of the last piece was left out since its last message.
    gap: bool,
    /// Whether the last turn completed with client-side calls.
    left_calls: bool,
    /// The end of the last turn, if it has ended.
    end: Option<TurnEnd>,
}

/// The pieces of a transcript while a turn runs.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// The pieces before the running one.
    pub(crate) earlier: Vec<Vec<Message>>,
    pub(crate) running: Vec<Message>,
}

/// The position of a message in the pieces of a transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) piece: usize,
    pub(crate) message: usize,
}

impl Repair {
    /// Begins a transcript for a reader.
    pub(crate) fn new() -> Self {
        let (pieces, calls) = (Vec::new(), OpenCalls::default());
        Self { pieces, for_model: false, calls, gap: false, left_calls: false, end: None }
    }

    /// Returns the transcript of a log for the model.
    pub(crate) fn from_log(log: &[Entry]) -> Self {
        let mut repair = Self { for_model: true, ..Self::new() };
        for turn in log.chunk_by(same_turn) {
            repair.take_turn(turn);
        }
        repair
    }

    /// Returns the calls that the next turn may answer.
    pub(crate) fn open_calls(&self) -> &OpenCalls {
        &self.calls
    }

    /// Closes the last piece and returns all pieces.
    pub(crate) fn finish(mut self) -> Vec<Vec<Message>> {
        self.close();
        self.pieces
    }

    /// Returns all pieces of a log whose last turn is running: that one has its messages so far, without an answer whose
    /// calls have no results yet.
    pub(crate) fn finish_running(mut self) -> Pieces {
        let mut running = self.pieces.pop().unwrap_or_default();
        if self.calls.is_waiting() {
            running.pop();
        } else {
            running.extend(self.calls.settle());
        }
        Pieces { earlier: self.pieces, running }
    }

    /// Returns the same pieces, with that of the running turn as the last one.
    pub(crate) fn finish_so_far(self) -> Vec<Vec<Message>> {
        let Pieces { mut earlier, running } = self.finish_running();
        earlier.push(running);
        earlier
    }

    /// Returns all pieces of a log whose last turn waits for its caller: its open calls have no result.
    pub(crate) fn finish_waiting(mut self) -> Vec<Vec<Message>> {
        match self.pieces.last_mut() {
            Some(piece) if self.calls.may_run() => piece.extend(self.calls.settled()),
            _ => self.close(),
        }
        self.pieces
    }

    /// Adds a running turn with `input`, and returns all pieces. `rest` has the further entries of a turn that
    /// stopped before.
    pub(crate) fn finish_with(mut self, input: Vec<Message>, rest: &[Entry]) -> Pieces {
        self.enter(input.iter());
        for message in results_first(input) {
            self.push(message);
        }
        rest.iter().for_each(|entry| self.take(entry));
        let mut running = self.pieces.pop().unwrap_or_default();
        running.extend(self.calls.settle());
        Pieces { earlier: self.pieces, running }
    }

    /// Adds a turn, and returns the place at which its messages begin. A turn that is left out has none.
    pub(crate) fn take_turn(&mut self, turn: &[Entry]) -> Option<Place> {
        messages_in(turn).next()?;
        self.enter(messages_in(turn));
        let piece = self.pieces.len().saturating_sub(1);
        let place = Place { piece, message: self.pieces.last().map_or(0, Vec::len) };
        let refused = if self.for_model { refused_part(turn) } else { 0..0 };
        for (place, entry) in turn.iter().enumerate() {
            match entry.kind.as_message().filter(is_remembered) {
                Some(message) if refused.contains(&place) => self.push(stand_in(message)),
                _ => self.take(entry),
            }
        }
        self.end = last_end(turn).cloned();
        Some(place)
    }

    fn take(&mut self, entry: &Entry) {
        match &entry.kind {
            EntryKind::Message(message) if is_remembered(&message) => self.push(message.clone()),
            EntryKind::CallStarted(start) => self.calls.note_start(start),
            EntryKind::TurnEnded(end) => self.take_end(end),
            _ => {}
        }
    }

    fn take_end(&mut self, end: &TurnEnd) {
        // If the turn continues after this end, the model was asked in between.
        self.gap = true;
        if matches!(end, TurnEnd::Completed(_)) {
            self.calls.leave_to_caller();
            self.left_calls |= self.calls.is_waiting();
        }
    }

    /// Begins a turn with these messages: in a new piece, unless they answer calls of the last one.
    fn enter<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) {
        if !leading(messages).any(|message| self.calls.waits_for(message)) {
            self.close();
            self.pieces.push(Vec::new());
        }
        (self.gap, self.left_calls) = (false, false);
    }

    fn push(&mut self, message: Message) {
        let Some(piece) = self.pieces.last_mut() else { return };
        if message.role() == Role::Tool {
            self.gap |= !self.calls.accept(&message);
            return;
        }
        piece.extend(self.calls.settle());
        if message.is_empty_answer() {
            self.gap = true;
            return;
        }
        let user_before = piece.last().is_some_and(|last| last.role() == Role::User);
        if self.gap && user_before && message.role() == Role::User {
            piece.push(Message::assistant(NO_ANSWER));
        }
        (self.gap, self.left_calls) = (false, false);
        self.calls = OpenCalls::from_message(&message);
        piece.push(message);
    }

    /// Ends the last piece with an answer.
    fn close(&mut self) {
        let Some(piece) = self.pieces.last_mut() else { return };
        piece.extend(self.calls.settle());
        let answered = piece.last().is_some_and(is_answer);
        let closing = match self.end.take() {
            _ if piece.is_empty() => None,
            Some(TurnEnd::Completed(_)) if answered => None,
            Some(TurnEnd::Completed(_)) if self.left_calls => Some(CONTINUED_WITHOUT_RESULTS.into()),
            Some(TurnEnd::Completed(_)) => Some(NO_ANSWER.into()),
            Some(TurnEnd::Refused) if !answered => Some(NO_ANSWER.into()),
            Some(TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) if !partial.is_empty() => {
                Some(after_interruption(&partial))
            }
            _ if answered => None,
            _ => Some(INTERRUPTED.into()),
        };
        piece.extend(closing.map(Message::assistant));
        if piece.is_empty() {
            self.pieces.pop();
        }
    }
}

/// The calls of one answer and the results received so far.
///
/// Ids need not be unique, not even within an answer: each result goes to the first call with its id that has
/// none.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    progress: Progress,
}

/// The progress of a turn with the calls of an answer.
#[derive(Debug, Clone, Copy, Default)]
enum Progress {
    /// It is unknown whether their tools were started.
    #[default]
    Unknown,
    /// No tool can have been started for any of them.
    NotStarted,
    /// The turn has ended and left them to the caller, without starting a tool.
    LeftToCaller,
}

#[derive(Debug, Clone)]
struct OpenCall {
    id: Text,
    name: Text,
    result: Option<Message>,
    /// An incomplete call must not run.
    complete: bool,
    /// Whether its tool must not run twice and its start is recorded.
    started: bool,
}

impl OpenCalls {
    /// Returns the calls of an answer; none for other messages.
    pub(crate) fn from_message(message: &Message) -> Self {
        let open = |call: &ToolCall| OpenCall {
            id: call.id.clone(),
            name: call.name.clone(),
            result: None,
            complete: call.complete,
            started: false,
        };
        Self { calls: message.tool_calls().map(open).collect(), progress: Progress::Unknown }
    }

    /// Marks the calls as not started.
    pub(crate) fn not_started(self) -> Self {
        Self { progress: Progress::NotStarted, ..self }
    }

    /// Notes that from now on tools may be running for the calls.
    pub(crate) fn start(&mut self) {
        self.progress = Progress::Unknown;
    }

    /// Notes that the turn has ended and that its caller is to answer the calls.
    pub(crate) fn leave_to_caller(&mut self) {
        self.progress = Progress::LeftToCaller;
    }

    /// Notes that the start of a call is recorded. It is the call at the recorded position, or the first one with
    /// its id if the answer was changed on its way. A start for a call of another answer is ignored.
    pub(crate) fn note_start(&mut self, start: &CallStart) {
        let place = usize::try_from(start.key.position).unwrap_or(usize::MAX);
        let at_place = self.calls.get(place).is_some_and(|call| call.id == start.call_id && !call.started);
        let first = || self.calls.iter().position(|call| call.id == start.call_id && !call.started);
        let place = if at_place { Some(place) } else { first() };
        if let Some(call) = place.and_then(|place| self.calls.get_mut(place)) {
            call.started = true;
        }
    }

    /// Checks whether these are the calls of this answer, by their ids in order.
    pub(crate) fn are_those_of(&self, message: &Message) -> bool {
        self.calls.iter().map(|call| &call.id).eq(message.tool_calls().map(|call| &call.id))
    }

    /// Takes a tool message as the result of its call. Returns `false` if no open call has its id.
    pub(crate) fn accept(&mut self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        let waiting = |call: &&mut OpenCall| call.id == result.call_id && call.result.is_none();
        let Some(call) = self.calls.iter_mut().find(waiting) else { return false };
        call.result = Some(message.clone());
        true
    }

    /// Checks whether a tool message would be accepted.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        self.calls.iter().any(|call| call.id == result.call_id && call.result.is_none())
    }

    /// Checks whether any call has no result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    /// Checks whether any call that may run has no result.
    pub(crate) fn may_run(&self) -> bool {
        self.calls.iter().any(OpenCall::may_run)
    }

    /// Returns the results in call order, with error results for missing ones of calls that must not run.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Message> {
        let settled = self.calls.iter().filter(|call| !call.may_run());
        settled.map(|call| call.result.clone().unwrap_or_else(|| call.without_result(self.progress)))
    }

    /// Returns error results for the calls that have none.
    pub(crate) fn missing(&self) -> Vec<Message> {
        let missing = self.calls.iter().filter(|call| call.result.is_none());
        missing.map(|call| call.without_result(self.progress)).collect()
    }

    /// Returns all results in call order, with error results for missing ones. No call is open afterwards.
    pub(crate) fn settle(&mut self) -> impl Iterator<Item = Message> {
        let Self { calls, progress } = std::mem::take(self);
        calls
            .into_iter()
            .map(move |call| call.result.clone().unwrap_or_else(|| call.without_result(progress)))
    }
}

impl OpenCall {
    fn may_run(&self) -> bool {
        self.complete && self.result.is_none()
    }

    fn without_result(&self, progress: Progress) -> Message {
        let call = ToolCall::new(self.id.clone(), self.name.clone(), "");
        let text = match progress {
            _ if self.started => VERIFY_BEFORE_RETRYING,
            Progress::NotStarted => NOT_STARTED,
            Progress::LeftToCaller => NOT_RUN,
            Progress::Unknown => OUTCOME_UNKNOWN,
        };
        Message::tool(ToolResult::error(&call, text))
    }
}

/// Checks whether memory keeps a message. System messages belong to their request.
pub(crate) fn is_remembered(message: &&Message) -> bool {
    message.role() != Role::System && !message.is_ephemeral()
}

pub(crate) fn is_answer(message: &Message) -> bool {
    message.role() == Role::Assistant
}

pub(crate) fn has_calls(message: &Message) -> bool {
    message.tool_calls().next().is_some()
}

/// Returns the answer that an entry holds.
pub(crate) fn answer_in(entry: &Entry) -> Option<&Message> {
    entry.kind.as_message().filter(|message| is_answer(message))
}

/// Returns the messages of a turn for a transcript: none if it was rolled back.
fn messages_in(turn: &[Entry]) -> impl Iterator<Item = &Message> {
    let turn = if last_end(turn) == Some(&TurnEnd::RolledBack) { &[] } else { turn };
    turn.iter().filter_map(|entry| entry.kind.as_message()).filter(is_remembered)
}

/// Returns the last turn of a log that has messages and was not rolled back.
pub(crate) fn last_with_messages(log: &[Entry]) -> Option<&[Entry]> {
    let has_messages =
        |turn: &[Entry]| last_end(turn) != Some(&TurnEnd::RolledBack) && remembered(turn).next().is_some();
    log.chunk_by(same_turn).rfind(|turn| has_messages(turn))
}

/// Returns the remembered messages of a turn, without empty answers, each with its entry.
pub(crate) fn remembered(turn: &[Entry]) -> impl Iterator<Item = (&Entry, &Message)> {
    let messages = turn.iter().filter_map(|entry| Some((entry, entry.kind.as_message()?)));
    messages.filter(|(_, message)| is_remembered(message) && !message.is_empty_answer())
}

/// Returns the messages before the first answer, which may answer calls of an earlier turn.
fn leading<'a>(messages: impl Iterator<Item = &'a Message>) -> impl Iterator<Item = &'a Message> {
    messages.take_while(|message| !is_answer(message))
}

/// Moves the results before the first answer to the front of the messages.
pub(crate) fn results_first(messages: Vec<Message>) -> Vec<Message> {
    let answer = messages.iter().position(is_answer);
    let mut leading = messages;
    let rest = leading.split_off(answer.unwrap_or(leading.len()));
    leading.sort_by_key(|message| message.role() != Role::Tool);
    leading.extend(rest);
    leading
}

/// Returns the places of the entries of a turn that its provider refused: those after the last answer, if the turn was
/// not answered later.
pub(crate) fn refused_part(turn: &[Entry]) -> Range<usize> {
    let is_accepted = |entry: &Entry| match &entry.kind {
        EntryKind::Message(message) => message.role() == Role::Assistant,
        kind => matches!(kind, EntryKind::TurnEnded(TurnEnd::Completed(_))),
    };
    let refused = turn.iter().rposition(|entry| entry.kind == EntryKind::TurnEnded(TurnEnd::Refused));
    let from = turn.iter().rposition(is_accepted).map_or(0, |accepted| accepted.saturating_add(1));
    from..refused.unwrap_or(from).max(from)
}

/// Returns the message to send in place of a refused one.
fn stand_in(message: &Message) -> Message {
    let new = match message.content() {
        MessageContent::User(_) => Message::user(MESSAGE_REFUSED),
        MessageContent::Tool(result) => {
            let mut result = result.clone();
            result.parts = vec![Part::Text(RESULT_REFUSED.into())];
            Message::tool(result)
        }
        _ => return message.clone(),
    };
    if message.is_hidden() { new.hidden() } else { new }
}

/// Returns the entries of a snapshot without the turns whose beginning was not read.
pub(crate) fn whole_turns(snapshot: Snapshot) -> Vec<Entry> {
    let open = snapshot.open_turn.is_some();
    let mut log = snapshot.into_entries();
    if log.first().is_none_or(|first| first.follows() == EntryId::BEGINNING) {
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
mod tests;
