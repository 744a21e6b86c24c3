//! What memory has of a client's list of messages (law M8).

use std::num::NonZeroUsize;

use advisor_core::{
    BlockContent, ConversationKey, Media, Message, MessageContent, Part, Role, TurnEnd, TurnId,
};
use advisor_sse::media_as_text;
use chat_memory_advisor::TurnMessages;

use super::asking::Asking;
use super::content::SentMessage;
use super::is_empty;
use crate::ChatServer;
use crate::refusal::Refusal;

/// The turns that are read beyond those of the list: failed ones, which the client may have left out.
const FURTHER_TURNS: usize = 16;

/// The newest turns of a conversation.
#[derive(Debug, Default)]
pub(super) struct Stored {
    turns: Vec<StoredTurn>,
    /// The messages with which the users have begun these turns.
    said: Vec<Said>,
    /// The number of turns that an advisor outside memory has answered lately. The client has them, and memory has not.
    outside: usize,
}

#[derive(Debug)]
struct StoredTurn {
    id: TurnId,
    answer: Vec<Piece>,
    has_calls: bool,
    is_finished: bool,
    begins_with_results: bool,
}

/// A piece of the answer of a turn. White space and reasoning do not count.
#[derive(Debug)]
enum Piece {
    Text(String),
    /// Only some protocols write it as a text.
    Refusal(String),
    /// Only some protocols write them as a text.
    Media(Media),
    /// An answer that was interrupted before memory had any text of it. Only the client knows what it was shown.
    Unknown,
}

/// A message of the user, as it is compared: white space does not count.
#[derive(Debug)]
struct Said {
    text: String,
    media: Vec<Part>,
    /// The place of its turn.
    turn: usize,
}

/// A message of the user in a client's list, with what the client has kept of the answer.
#[derive(Debug, Default)]
struct SentTurn {
    said: Option<Said>,
    answer: String,
    has_calls: bool,
}

impl Stored {
    /// Loads the turns that a list of so many messages may have. Of a turn that is sent again, and of those behind it, the
    /// list has nothing yet.
    pub(super) async fn load(
        server: &ChatServer,
        conversation: &ConversationKey,
        turn: Option<&TurnId>,
        messages: usize,
    ) -> Result<Self, Refusal> {
        let limit = NonZeroUsize::MIN.saturating_add(messages.saturating_add(FURTHER_TURNS));
        let page = server.memory().turns(conversation, None, limit).await;
        let turns = page.map_err(|error| Refusal::from(&error))?.turns;
        let outside = server.turns().answered_outside_memory(conversation);
        let mut stored = Self { outside, ..Self::default() };
        for of in turns.iter().take_while(|stored| Some(&stored.turn) != turn) {
            let said = of.messages.iter().take_while(|message| message.role() != Role::Assistant);
            let said = said.filter(|message| message.role() == Role::User && !message.is_hidden());
            stored.said.extend(said.map(|message| Said::new(message, stored.turns.len())));
            stored.turns.push(StoredTurn::new(of));
        }
        Ok(stored)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.outside == 0
    }

    /// Finds the messages of a client's history, in their order. Memory may have others between them. Returns the number of
    /// messages up to the last one of the history.
    ///
    /// # Errors
    /// If the conversation lacks a message of it, or has another answer to it.
    pub(super) fn find(&self, history: &[SentMessage]) -> Result<usize, Refusal> {
        let sent = sent_turns(history)?;
        let (mut places, mut outside) = ((self.said.len(), None), self.outside);
        for (number, sent) in sent.iter().enumerate().rev() {
            let place = match &sent.said {
                Some(said) => [Shown::Stored, Shown::Anything].into_iter().find_map(|shown| {
                    self.said.iter().take(places.0).rposition(|stored| {
                        stored.has(said) && has_answer(self.with_followers(stored.turn), sent, shown)
                    })
                }),
                // It stands before the first message of the user.
                None => has_answer(&self.turns, sent, Shown::Anything).then_some(places.0),
            };
            if place.is_none() && sent.said.is_some() && outside > 0 {
                outside = outside.saturating_sub(1);
                continue;
            }
            let place = place.ok_or_else(|| Refusal::other_history(number))?;
            places = (place, places.1.or_else(|| sent.said.is_some().then_some(place)));
        }
        Ok(places.1.map_or_else(|| self.before_unfinished(), |last| last.saturating_add(1)))
    }

    /// Returns the number of messages before the turns without an answer at the end of the conversation.
    fn before_unfinished(&self) -> usize {
        let last = self.turns.iter().rposition(|turn| turn.is_finished);
        self.said.iter().filter(|said| last.is_some_and(|last| said.turn <= last)).count()
    }

    /// Counts the first of these messages that the conversation ends with, behind `history` of its own. The last message is
    /// new, unless all of them repeat the last turn, which is returned then. A request without an id is one that is `asking`.
    pub(super) fn known(
        &self,
        history: Option<usize>,
        said: &[Message],
        asking: Option<&Asking<'_>>,
    ) -> (usize, Option<TurnId>) {
        let sent: Vec<_> = said.iter().map(|message| Said::new(message, 0)).collect();
        let from = history.unwrap_or_else(|| self.before_unfinished());
        let repeated = asking.and_then(|asking| self.repeated(history, from, &sent, asking));
        let behind = || self.said.get(from..).unwrap_or_default();
        repeated.map_or_else(|| (known(behind(), &sent), None), |(known, turn)| (known, Some(turn)))
    }

    /// Returns the last turn if these messages are those with which it has begun, and the client lacks its answer: there is
    /// none, or the client's history ends before it, or the client says that it `repeats` its request. Of the messages, so
    /// many stand before it.
    fn repeated(
        &self,
        history: Option<usize>,
        from: usize,
        sent: &[Said],
        asking: &Asking<'_>,
    ) -> Option<(usize, TurnId)> {
        let (place, last) = self.turns.iter().enumerate().next_back()?;
        let first = self.said.iter().position(|said| said.turn == place)?;
        let before = place.checked_sub(1).and_then(|before| self.turns.get(before)).map(|before| &before.id);
        let follows = asking.after.is_none_or(|after| before == Some(after));
        let is_seen = history.is_some_and(|history| history > first);
        let lacks_answer =
            !last.is_finished || asking.repeats || (asking.after.is_none() && history.is_some());
        if !follows || is_seen || last.begins_with_results || !lacks_answer {
            return None;
        }
        let known = known(self.said.get(from.min(first)..first).unwrap_or_default(), sent);
        let (sent, stored) = (sent.get(known..)?, self.said.get(first..)?);
        let is_same =
            sent.len() == stored.len() && stored.iter().zip(sent).all(|(stored, sent)| stored.is(sent));
        is_same.then(|| (known, last.id.clone()))
    }

    /// Returns a turn, and the turns behind it that no message of a user begins.
    fn with_followers(&self, turn: usize) -> &[StoredTurn] {
        let next = self.said.iter().map(|said| said.turn).find(|other| *other > turn);
        self.turns.get(turn..next.unwrap_or(self.turns.len())).unwrap_or_default()
    }
}

impl StoredTurn {
    fn new(turn: &TurnMessages) -> Self {
        let own = turn.messages.len().saturating_sub(usize::from(turn.has_added_answer));
        let shown = turn.messages.iter().take(own).filter(|message| !message.is_hidden());
        let blocks = || shown.clone().flat_map(Message::blocks).map(|block| block.content());
        let broken = match &turn.end {
            Some(TurnEnd::Failed { partial }) => Some(Piece::Text(words(partial))),
            Some(TurnEnd::Interrupted { partial }) if partial.is_empty() => Some(Piece::Unknown),
            Some(TurnEnd::Interrupted { partial }) => Some(Piece::Text(words(partial))),
            _ => None,
        };
        Self {
            answer: blocks().filter_map(Piece::of).chain(broken).collect(),
            // Those of a provider are opaque.
            has_calls: blocks()
                .any(|content| matches!(content, BlockContent::ToolCall(_) | BlockContent::Opaque(_))),
            id: turn.turn.clone(),
            is_finished: matches!(turn.end, Some(TurnEnd::Completed(_))),
            begins_with_results: turn.messages.first().is_some_and(|first| first.role() == Role::Tool),
        }
    }
}

impl Piece {
    fn of(content: &BlockContent) -> Option<Self> {
        match content {
            BlockContent::Text(text) => Some(Self::Text(words(text))),
            BlockContent::Refusal(text) => Some(Self::Refusal(words(text))),
            BlockContent::Media(media) => Some(Self::Media(media.clone())),
            _ => None,
        }
    }

    /// Returns what follows the piece in the words of a client; `None` if they lack it. The last piece may be cut: the client
    /// has read no further.
    fn behind<'a>(&self, sent: &'a str, shown: Shown) -> Option<&'a str> {
        let behind = |text: &str| if text.starts_with(sent) { Some("") } else { sent.strip_prefix(text) };
        match self {
            Self::Text(text) => behind(text),
            Self::Refusal(text) => behind(text).or(Some(sent)),
            Self::Media(media) if sent.starts_with(['!', '[']) => {
                media_as_text(media).and_then(|text| behind(&words(&text))).or(Some(sent))
            }
            Self::Media(_) => Some(sent),
            Self::Unknown => Some(if shown == Shown::Anything { "" } else { sent }),
        }
    }
}

impl Said {
    fn new(message: &Message, turn: usize) -> Self {
        let parts = match message.content() {
            MessageContent::User(parts) => parts.as_slice(),
            _ => &[],
        };
        let media = parts.iter().filter(|part| part.as_text().is_none()).cloned().collect();
        let text: String = parts.iter().filter_map(Part::as_text).map(without_space).collect();
        Self { text, media, turn }
    }

    /// Checks whether this is the message that a client sends.
    fn is(&self, sent: &Self) -> bool {
        self.text == sent.text && self.media == sent.media
    }

    /// Checks whether this is the message that a client has kept. It may have left out media.
    fn has(&self, sent: &Self) -> bool {
        self.text == sent.text && sent.media.iter().all(|part| self.media.contains(part))
    }
}

/// Counts the first messages that `stored` ends with. The last one is no such message.
fn known(stored: &[Said], sent: &[Said]) -> usize {
    let ends = (0..stored.len()).filter_map(|from| stored.get(from..));
    let is_known =
        |end: &&[Said]| end.len() < sent.len() && end.iter().zip(sent).all(|(stored, sent)| stored.has(sent));
    ends.into_iter().find(is_known).map_or(0, <[Said]>::len)
}

/// What counts as shown of an answer of which memory has nothing.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Stored,
    Anything,
}

/// Checks whether turns have what a client has kept of an answer: nothing, or pieces beside one another, such as those of
/// the last round.
fn has_answer(turns: &[StoredTurn], sent: &SentTurn, shown: Shown) -> bool {
    let has_calls = !sent.has_calls || turns.iter().any(|turn| turn.has_calls || !turn.is_finished);
    let pieces: Vec<_> = turns.iter().flat_map(|turn| &turn.answer).collect();
    let has_from = |first: usize| {
        let mut ends = pieces.iter().skip(first).scan(sent.answer.as_str(), |rest, piece| {
            *rest = piece.behind(rest, shown)?;
            Some(rest.is_empty())
        });
        ends.any(|is_end| is_end)
    };
    has_calls && (sent.answer.is_empty() || (0..pieces.len()).any(has_from))
}

/// Returns what a client has kept of each turn. What stands before its first message of the user comes first.
fn sent_turns(history: &[SentMessage]) -> Result<Vec<SentTurn>, Refusal> {
    let (mut turns, mut turn) = (Vec::new(), SentTurn::default());
    for message in history {
        match message {
            SentMessage::User(content) => {
                let message = content.read()?;
                if !is_empty(&message) {
                    let next = SentTurn { said: Some(Said::new(&message, 0)), ..SentTurn::default() };
                    turns.push(std::mem::replace(&mut turn, next));
                }
            }
            SentMessage::Answer(answer) => {
                turn.answer.push_str(&words(&answer.text));
                turn.has_calls |= !answer.calls.is_empty();
            }
            SentMessage::Result(_) => turn.has_calls = true,
            SentMessage::Instructions => {}
        }
    }
    turns.push(turn);
    Ok(turns)
}

fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns a text of an answer without white space, and without the reasoning that clients and models write into it.
fn words(text: &str) -> String {
    let text = without(&without_space(text), "<think>", "</think>");
    without(&text, "<thinking>", "</thinking>")
}

/// Leaves out what stands between these marks, or behind the last one.
fn without(text: &str, begin: &str, end: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, inside)) = rest.split_once(begin) {
        kept.push_str(before);
        rest = inside.split_once(end).map_or("", |(_, behind)| behind);
    }
    kept + rest
}
