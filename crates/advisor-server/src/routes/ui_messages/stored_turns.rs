//! `StoredTurns`: writes stored turns as their streams had them, and reads the messages from these.

use advisor_core::{Message, Role, TurnId};
use advisor_sse::{Encoder, Frames, UiMessages};
use chat_memory_advisor::TurnMessages;

use super::answer_id;
use super::message_reader::{MessageReader, ReadMessage};
use super::stored_chunks::stored_chunks;
use super::user_parts::user_parts;
use crate::routes::ask::call_suffix::CallSuffix;
use crate::routes::ask::decided_calls::ShowsEnds;
use crate::routes::conversations::shown_ids::ShownIds;

/// Writes stored turns as their streams had them, the oldest first.
pub(super) struct StoredTurns<E> {
    /// Returns the encoder of a turn.
    encoder: E,
    /// The turn that runs, which writes its answer in its own stream.
    running: Option<TurnId>,
    /// The ids of the calls of the last answer.
    ids: ShownIds,
}

/// A turn, as a client of the AI SDK has received it.
pub(super) struct WrittenTurn {
    turn: TurnId,
    /// The ends of calls of the turn before.
    ends: String,
    said: Vec<ReadMessage>,
    /// The stream of the answer.
    answer: String,
    continues: bool,
}

impl<E: Fn(&TurnId) -> UiMessages> StoredTurns<E> {
    pub(super) fn new(encoder: E, running: Option<TurnId>) -> Self {
        Self { encoder, running, ids: ShownIds::default() }
    }

    /// Writes these turns, the oldest first.
    pub(super) fn write(mut self, turns: &[TurnMessages]) -> Vec<WrittenTurn> {
        let next = turns.iter().skip(1).map(Some).chain([None]);
        turns.iter().zip(next).map(|(turn, next)| self.write_turn(turn, next)).collect()
    }

    fn write_turn(&mut self, turn: &TurnMessages, next: Option<&TurnMessages>) -> WrittenTurn {
        let (asked, answers) = visible(turn, next);
        let mut encoder = (self.encoder)(&turn.turn);
        let ends = self.ends(&asked, &mut encoder);
        let suffix = CallSuffix::of(&turn.turn);
        let continues = suffix.is_of_continued() && !ends.is_empty();
        self.ids.begin_turn_with(suffix.in_message());
        answers.iter().for_each(|message| self.ids.pass(message));
        let answer = match self.running.as_ref() == Some(&turn.turn) {
            true => String::new(),
            false => written(&mut encoder, turn, &answers),
        };
        WrittenTurn { said: said(&turn.turn, &asked), turn: turn.turn.clone(), ends, answer, continues }
    }

    /// Returns the ends of the calls whose results begin a turn.
    fn ends(&mut self, asked: &[&Message], encoder: &mut UiMessages) -> String {
        let mut frames = Frames::new();
        for result in asked.iter().filter_map(|message| message.tool_result()) {
            encoder.show_end(&self.ids.of_result(result), result, &mut frames);
        }
        text(&mut frames)
    }
}

/// Returns the messages that a client has after it has read these turns.
pub(super) fn read_messages(turns: Vec<WrittenTurn>) -> Vec<ReadMessage> {
    let mut messages = Vec::<ReadMessage>::new();
    for WrittenTurn { turn, ends, said, answer, continues } in turns {
        if let Some(asking) = messages.iter_mut().rfind(|message| message.is_of_assistant()) {
            MessageReader::new(asking).read(&ends);
        }
        messages.extend(said);
        match messages.last_mut().filter(|last| continues && last.is_of_assistant()) {
            Some(continued) => MessageReader::new(continued).read(&answer),
            None => {
                let mut message = ReadMessage::of_assistant(answer_id(&turn));
                MessageReader::new(&mut message).read(&answer);
                messages.extend(Some(message).filter(|message| !message.parts.is_empty()));
            }
        }
    }
    messages
}

/// Returns the messages that clients see: those that begin the turn, and those of its answer with the results that the turn
/// has stored. Memory adds an answer for the model to a turn that has none.
fn visible<'a>(
    turn: &'a TurnMessages,
    next: Option<&'a TurnMessages>,
) -> (Vec<&'a Message>, Vec<&'a Message>) {
    let added = usize::from(turn.has_added_answer);
    let own = turn.messages.len().saturating_sub(added);
    let is_earlier = |message: &Message| turn.earlier_results.iter().any(|earlier| earlier.is_same(message));
    let own = turn.messages.iter().take(own).filter(|message| !is_earlier(message));
    let stored = next.map(|next| next.earlier_results.as_slice()).unwrap_or_default();
    let mut asked: Vec<_> = own.chain(stored).filter(|message| !message.is_hidden()).collect();
    let first = asked.iter().position(|message| message.role() == Role::Assistant).unwrap_or(asked.len());
    let answers = asked.split_off(first);
    (asked, answers)
}

/// Returns the messages of the user that begin a turn. The first one has the id of the turn, as it is sent.
fn said(turn: &TurnId, asked: &[&Message]) -> Vec<ReadMessage> {
    let said = asked.iter().filter(|message| message.role() == Role::User);
    let numbered = said.enumerate().map(|(place, message)| {
        let id = if place == 0 { turn.to_string() } else { format!("{turn}-{}", place + 1) };
        ReadMessage::of_user(id, user_parts(message))
    });
    numbered.collect()
}

fn written(encoder: &mut UiMessages, turn: &TurnMessages, answers: &[&Message]) -> String {
    let mut frames = Frames::new();
    encoder.begin(&mut frames);
    for chunk in stored_chunks(turn, answers) {
        encoder.chunk(&chunk, &mut frames);
    }
    text(&mut frames)
}

/// Frames of JSON are UTF-8.
fn text(frames: &mut Frames) -> String {
    String::from_utf8_lossy(&frames.take()).into_owned()
}
