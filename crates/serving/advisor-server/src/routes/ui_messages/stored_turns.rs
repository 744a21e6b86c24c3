//! Writes stored turns as their streams had them, and reads the messages of the AI SDK from these.

use std::cmp::Ordering;

use advisor_core::{
    Block, BlockId, ChatResponse, Chunk, FinishReason, Media, MediaSource, Message, MessageContent,
    NotStartedReason, Part, Role, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult, TurnEnd, TurnId,
};
use advisor_sse::{Encoder, Frames, UiMessages};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chat_memory_advisor::TurnMessages;
use serde_json::{Value, json};

use crate::routes::ask::answers::ShowsEnds;
use crate::routes::ask::headers::CallSuffix;
use crate::routes::conversations::shown::ShownIds;
use crate::routes::ui_messages::answer_id;
use crate::routes::ui_messages::message_reader::{MessageReader, ReadMessage};

/// Returns the messages that a client has after it has read these turns, the oldest first, each by its encoder. The turn that
/// runs writes its answer in its own stream.
pub(super) fn read_messages(
    turns: &[TurnMessages],
    encoder_of: impl Fn(&TurnId) -> UiMessages,
    running: Option<&TurnId>,
) -> Vec<ReadMessage> {
    // The ids of the calls of the last answer.
    let mut ids = ShownIds::default();
    let mut messages = Vec::<ReadMessage>::new();
    let next = turns.iter().skip(1).map(Some).chain([None]);
    for (turn, next) in turns.iter().zip(next) {
        let (asked, answers) = visible(turn, next);
        let mut encoder = encoder_of(&turn.turn);
        let mut ends = Frames::new();
        for result in asked.iter().filter_map(|message| message.tool_result()) {
            encoder.show_end(&ids.of_result(result), result, &mut ends);
        }
        let ends = text(&mut ends);
        if let Some(asking) = messages.iter_mut().rfind(|message| message.is_of_assistant()) {
            MessageReader::new(asking).read(&ends);
        }
        messages.extend(said(&turn.turn, &asked));
        let suffix = CallSuffix::of(&turn.turn);
        let continues = suffix.is_of_continued() && !ends.is_empty();
        ids.begin_turn_with(suffix.in_message());
        answers.iter().for_each(|message| ids.pass(message));
        if running == Some(&turn.turn) {
            continue;
        }
        let mut answer = match messages.pop_if(|last| continues && last.is_of_assistant()) {
            Some(continued) => continued,
            None => ReadMessage::of_assistant(answer_id(&turn.turn)),
        };
        MessageReader::new(&mut answer).read(&written(&mut encoder, turn, &answers));
        messages.extend(Some(answer).filter(|answer| !answer.parts.is_empty()));
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

/// Returns the chunks of a stored turn that has ended, of these messages, as its stream had them.
///
/// What the store does not keep is missing: void attempts, progress of tools, and all but the text of an answer that broke
/// off.
pub(super) fn stored_chunks(turn: &TurnMessages, messages: &[&Message]) -> Vec<Chunk> {
    let answers = messages.iter().filter(|message| message.role() == Role::Assistant).count();
    let answers = u32::try_from(answers).unwrap_or(u32::MAX);
    let (reason, partial) = ending(turn.end.as_ref());
    let nothing = ChatResponse::new(1, Message::assistant_blocks(Vec::new()), FinishReason::Empty);
    let mut stored = Stored { chunks: Vec::new(), last: nothing, open: Vec::new() };
    let partial = partial.filter(|_| turn.has_added_answer);
    let partial = partial.map(|text| Message::assistant_blocks(vec![Block::text(text.as_str())]));
    let mut place = 0_u32;
    for message in messages.iter().copied().chain(&partial) {
        if message.role() == Role::Assistant {
            let round = round_of(place, answers, turn.last_round);
            stored.answer(ChatResponse::new(round, message.clone(), reason.clone()));
            place = place.saturating_add(1);
        }
        stored.result(message.tool_result());
    }
    let Stored { mut chunks, last, .. } = stored;
    chunks.push(Chunk::Completed(last.with_finish(reason)));
    chunks
}

/// Returns the finish reason of a turn, and the text that was shown of an answer that broke off.
fn ending(end: Option<&TurnEnd>) -> (FinishReason, Option<&Text>) {
    match end {
        Some(TurnEnd::Completed(reason)) => (reason.clone(), None),
        Some(TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) => {
            (FinishReason::Interrupted, Some(partial).filter(|partial| !partial.is_empty()))
        }
        Some(TurnEnd::Refused) => (FinishReason::Interrupted, None),
        _ => (FinishReason::Stop, None),
    }
}

/// The chunks so far.
struct Stored {
    chunks: Vec<Chunk>,
    last: ChatResponse,
    /// The calls of the last answer that have no result.
    open: Vec<(BlockId, ToolCall)>,
}

impl Stored {
    fn answer(&mut self, response: ChatResponse) {
        self.chunks.extend(response.blocks().flat_map(|(id, block)| Chunk::from_block(id, block)));
        self.open = response.tool_calls().map(|(block, call)| (block, call.clone())).collect();
        self.last = response;
    }

    /// Adds the events of a result. Ids need not be unique: a result belongs to the first call with its id that has none.
    fn result(&mut self, result: Option<&ToolResult>) {
        let Some(result) = result else { return };
        let place = self.open.iter().position(|(_, call)| call.id == result.call_id);
        let Some((block, call)) = place.map(|place| self.open.remove(place)) else { return };
        let started = ToolEventKind::Started { arguments: call.arguments.into() };
        let not_started = |reason| vec![ToolEventKind::NotStarted { reason, result: result.clone() }];
        let kinds = match (result.is_denied, result.is_error) {
            (true, _) => not_started(NotStartedReason::Denied),
            // The store does not tell failed calls from those that never began, and clients show both alike.
            (false, true) => not_started(NotStartedReason::Other),
            (false, false) => vec![started, ToolEventKind::Finished { result: result.clone() }],
        };
        let event = |kind| ToolEvent { block, call_id: call.id.clone(), name: call.name.clone(), kind };
        self.chunks.extend(kinds.into_iter().map(|kind| Chunk::Tool(Box::new(event(kind)))));
    }
}

/// Returns the round of an answer, by its place among the answers of its turn. The round of the last one is the stored one,
/// which its approvals name. Text of an answer that broke off follows it.
fn round_of(place: u32, answers: u32, last: Option<u32>) -> u32 {
    let (number, last) = (place.saturating_add(1), last.unwrap_or(answers));
    match number.cmp(&answers) {
        Ordering::Less if number < last => number,
        Ordering::Less => number.saturating_add(1),
        Ordering::Equal => last,
        Ordering::Greater => last.max(answers).saturating_add(1),
    }
}

/// Returns the parts of a message of the user, in the form of the AI SDK. There is at least one.
///
/// A file that only the provider has is left out.
pub(super) fn user_parts(message: &Message) -> Vec<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let part = |part: &Part| match part {
        Part::Text(part) => Some(text(part)),
        Part::Json(value) => Some(text(&value.to_string())),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => file(media),
        _ => None,
    };
    let mut parts: Vec<_> = match message.content() {
        MessageContent::User(parts) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts.push(text(""));
    }
    parts
}

fn file(media: &Media) -> Option<Value> {
    let url = match &media.source {
        MediaSource::Url(url) => url.to_string(),
        MediaSource::Bytes(bytes) => format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes)),
        _ => return None,
    };
    let mut part = json!({"type": "file", "mediaType": media.mime, "url": url});
    if let (Some(name), Some(part)) = (&media.name, part.as_object_mut()) {
        part.insert("filename".into(), name.as_str().into());
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_differ_and_the_last_one_is_the_stored_one() {
        let rounds =
            |answers, last| (0..=answers).map(|place| round_of(place, answers, last)).collect::<Vec<_>>();
        assert_eq!(rounds(0, None), [1]);
        assert_eq!(rounds(2, None), [1, 2, 3]);
        assert_eq!(rounds(2, Some(2)), [1, 2, 3]);
        assert_eq!(rounds(2, Some(5)), [1, 5, 6]);
        assert_eq!(rounds(3, Some(1)), [2, 3, 1, 4]);
    }
}
