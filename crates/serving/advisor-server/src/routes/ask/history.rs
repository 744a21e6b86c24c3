//! What memory has of a client's list of messages (law M8).

use std::num::NonZeroUsize;

use advisor_core::{BlockContent, ConversationKey, Error, ErrorKind, Media, Message, Role, TurnEnd, TurnId};
use advisor_sse::media_as_text;
use chat_memory_advisor::TurnMessages;

use super::content::SentMessage;
use super::is_empty;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::ask::headers::Asking;
use crate::turns::run::Said;

/// The turns that are read beyond those of the list: failed ones, which the client may have left out.
const FURTHER_TURNS: usize = 16;

/// The places of the messages without an answer, with the first message of a list, from which on they may be sent again.
/// Beginning at each, all are compared.
const MOST_KNOWN: usize = 500;

/// The most turns of the first read, and of each. A read has twice as many as the one before.
const FIRST_TURNS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const MOST_TURNS: NonZeroUsize = NonZeroUsize::new(64).unwrap();
const TWICE: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The newest turns of a conversation, and the history of a client that they are compared with.
#[derive(Debug)]
pub(super) struct Stored {
    history: Vec<SentTurn>,
    /// The number of messages of the users up to the last one of the history.
    pub(super) end_of_history: Result<usize, Refusal>,
    turns: Vec<StoredTurn>,
    /// The messages with which the users have begun these turns, each with the place of its turn.
    said: Vec<(usize, Said)>,
    /// The messages and answers of turns that an advisor outside memory has answered lately. The client has them, and memory
    /// has not.
    outside: Vec<(Vec<Said>, Answer)>,
}

#[derive(Debug)]
struct StoredTurn {
    id: TurnId,
    answer: Answer,
    is_finished: bool,
    begins_with_results: bool,
}

/// The answer of a turn.
#[derive(Debug, Default)]
struct Answer {
    pieces: Vec<Piece>,
    may_have_calls: bool,
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

/// A message of the user in a client's list, with what the client has kept of the answer.
#[derive(Debug, Default)]
struct SentTurn {
    said: Option<Said>,
    answer: String,
    has_calls: bool,
}

impl Stored {
    /// Reads the newest turns, a few at a time, until they have the history of a client's list: so many of its first messages.
    /// Of a turn that is sent again, and of those behind it, the list has nothing yet. Returns the list, too.
    pub(super) async fn load(
        server: &ChatServer,
        conversation: &ConversationKey,
        turn: Option<&TurnId>,
        messages: Vec<SentMessage>,
        history: usize,
    ) -> Result<(Self, Vec<SentMessage>), Refusal> {
        let failed = |error: Error| match error.kind() {
            // It was deleted since the first read.
            ErrorKind::Configuration => Refusal::unknown_history(),
            _ => Refusal::from(&error),
        };
        let next = NonZeroUsize::MIN.saturating_add(messages.len());
        let (mut left, mut turns, mut tip) =
            (next.saturating_add(FURTHER_TURNS), next.min(FIRST_TURNS), None);
        let outside = server.turns.answered_outside_memory(conversation);
        let place = server.comparisons.begin().await?;
        let begun = place.work(move || {
            let history = sent_turns(messages.get(..history).unwrap_or_default())?;
            Ok::<_, Refusal>((Self::new(history, outside), messages))
        });
        let (mut stored, messages) = begun.await??;
        drop(place);
        // The first read is that of a usual turn, and waits for none. The further ones have a place.
        let mut place = None;
        loop {
            let page = server.memory.turns(conversation, tip, turns).await.map_err(failed)?;
            let rest = NonZeroUsize::new(left.get().saturating_sub(page.turns.len()));
            tip = page.before;
            let turn = turn.cloned();
            let held = match place.take() {
                Some(held) => held,
                None => server.comparisons.begin().await?,
            };
            stored = held.work(move || stored.behind(&page.turns, turn.as_ref())).await?;
            place = Some(held);
            match rest.filter(|_| tip.is_some() && !stored.is_enough()) {
                Some(rest) => (left, turns) = (rest, turns.saturating_mul(TWICE).min(MOST_TURNS).min(rest)),
                None => return Ok((stored, messages)),
            }
        }
    }

    fn new(history: Vec<SentTurn>, outside: Vec<(Vec<Said>, Option<Message>)>) -> Self {
        let outside = outside.into_iter().map(|(said, answer)| (said, Answer::of(answer.iter())));
        let (turns, said) = (Vec::new(), Vec::new());
        Self { history, end_of_history: Ok(0), turns, said, outside: outside.collect() }
    }

    /// Adds the turns before these ones. If the turn that is sent again is among them, only those before it count.
    fn behind(mut self, page: &[TurnMessages], turn: Option<&TurnId>) -> Self {
        let older: Vec<_> = page.iter().take_while(|of| Some(&of.turn) != turn).collect();
        if older.len() < page.len() {
            self.turns.clear();
            self.said.clear();
        }
        self.said.iter_mut().for_each(|(place, _)| *place = place.saturating_add(older.len()));
        let said = older.iter().enumerate().flat_map(|(place, of)| {
            let asked = of.messages.iter().take_while(|message| message.role() != Role::Assistant);
            let said = asked.filter(|message| message.role() == Role::User && !message.is_hidden());
            said.map(move |message| (place, Said::new(message)))
        });
        self.said.splice(0..0, said);
        self.turns.splice(0..0, older.into_iter().map(StoredTurn::new));
        self.end_of_history = self.find();
        self
    }

    /// Checks whether the turns have the history, and the last one that is finished.
    fn is_enough(&self) -> bool {
        self.end_of_history.is_ok() && self.turns.iter().any(|turn| turn.is_finished)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.outside.is_empty()
    }

    /// Finds the messages of the client's history, in their order. Memory may have others between them. Returns the number of
    /// messages up to the last one of the history.
    ///
    /// # Errors
    /// If the conversation lacks a message of it, or has another answer to it.
    fn find(&self) -> Result<usize, Refusal> {
        // An answer that may be anything is the last resort: the client may have the one of another turn.
        self.find_preferring(Shown::Stored).or_else(|_| self.find_preferring(Shown::Anything))
    }

    fn find_preferring(&self, preferred: Shown) -> Result<usize, Refusal> {
        let (mut end, mut last) = (self.said.len(), None);
        for (number, sent) in self.history.iter().enumerate().rev() {
            let Some(said) = &sent.said else {
                // It stands before the first message of the user.
                let answers = self.turns.iter().map(|turn| &turn.answer);
                match sent.is_of(answers, Shown::Anything) {
                    true => continue,
                    false => return Err(Refusal::other_history(number)),
                }
            };
            let place = |shown| {
                self.said.iter().take(end).rposition(|(turn, stored)| {
                    stored.has(said) && sent.is_of(self.answers_from(*turn), shown)
                })
            };
            let is_outside = |(stored, answer): &(Vec<Said>, Answer)| {
                stored.iter().any(|stored| stored.has(said)) && sent.is_of([answer], Shown::Stored)
            };
            match place(preferred).or_else(|| place(Shown::Anything)) {
                Some(place) => (end, last) = (place, last.or(Some(place))),
                None if self.outside.iter().any(is_outside) => {}
                None => return Err(Refusal::other_history(number)),
            }
        }
        Ok(last.map_or_else(|| self.before_unfinished(), |last| last.saturating_add(1)))
    }

    /// Returns the number of messages before the turns without an answer at the end of the conversation.
    fn before_unfinished(&self) -> usize {
        let last = self.turns.iter().rposition(|turn| turn.is_finished);
        self.said.iter().filter(|(turn, _)| last.is_some_and(|last| *turn <= last)).count()
    }

    /// Counts the first of these messages that the conversation ends with, behind `history` of its own. The last message is
    /// new, unless all of them repeat the last turn, which is returned then. A request without an id is one that is `asking`.
    pub(super) fn known(
        &self,
        history: Option<usize>,
        said: &[Message],
        asking: Option<&Asking<'_>>,
    ) -> (usize, Option<TurnId>) {
        let sent: Vec<_> = said.iter().map(Said::new).collect();
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
        let first = self.said.iter().position(|(turn, _)| *turn == place)?;
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
            sent.len() == stored.len() && stored.iter().zip(sent).all(|((_, stored), sent)| stored == sent);
        is_same.then(|| (known, last.id.clone()))
    }

    /// Returns the answers of a turn, and of the turns behind it that no message of a user begins.
    fn answers_from(&self, turn: usize) -> impl Iterator<Item = &Answer> {
        let next = self.said.get(self.said.partition_point(|(other, _)| *other <= turn));
        let next = next.map_or(self.turns.len(), |(next, _)| *next);
        self.turns.get(turn..next).unwrap_or_default().iter().map(|turn| &turn.answer)
    }
}

impl StoredTurn {
    fn new(turn: &TurnMessages) -> Self {
        let own = turn.messages.len().saturating_sub(usize::from(turn.has_added_answer));
        let mut answer = Answer::of(turn.messages.iter().take(own));
        answer.pieces.extend(match &turn.end {
            Some(TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) if !partial.is_empty() => {
                Some(Piece::Text(words(partial)))
            }
            Some(TurnEnd::Interrupted { .. }) | None => Some(Piece::Unknown),
            _ => None,
        });
        let is_finished = matches!(turn.end, Some(TurnEnd::Completed(_)));
        answer.may_have_calls |= !is_finished;
        let begins_with_results = turn.messages.first().is_some_and(|first| first.role() == Role::Tool);
        Self { id: turn.turn.clone(), answer, is_finished, begins_with_results }
    }
}

impl Answer {
    fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Self {
        let mut answer = Self::default();
        for block in messages.filter(|message| !message.is_hidden()).flat_map(Message::blocks) {
            match block.content() {
                BlockContent::Text(text) => answer.pieces.push(Piece::Text(words(text))),
                BlockContent::Refusal(text) => answer.pieces.push(Piece::Refusal(words(text))),
                BlockContent::Media(media) => answer.pieces.push(Piece::Media(media.clone())),
                // Calls of a provider are opaque.
                BlockContent::ToolCall(_) | BlockContent::Opaque(_) => answer.may_have_calls = true,
                _ => {}
            }
        }
        answer
    }
}

impl Piece {
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

/// What counts as shown of an answer of which memory has nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    Stored,
    Anything,
}

impl SentTurn {
    /// Checks whether these answers have what the client has kept: nothing, or pieces that follow one another, such as those
    /// of the last round.
    fn is_of<'a>(&self, answers: impl IntoIterator<Item = &'a Answer>, shown: Shown) -> bool {
        let answers: Vec<_> = answers.into_iter().collect();
        let pieces: Vec<_> = answers.iter().flat_map(|answer| &answer.pieces).collect();
        let is_from = |first: usize| {
            let mut ends = pieces.iter().skip(first).scan(self.answer.as_str(), |rest, piece| {
                *rest = piece.behind(rest, shown)?;
                Some(rest.is_empty())
            });
            ends.any(|is_end| is_end)
        };
        let has_calls = !self.has_calls || answers.iter().any(|answer| answer.may_have_calls);
        has_calls && (self.answer.is_empty() || (0..pieces.len()).any(is_from))
    }
}

/// Counts the first messages that `stored` ends with. The last one is no such message.
fn known(stored: &[(usize, Said)], sent: &[Said]) -> usize {
    let first = (stored.len() + 1).saturating_sub(sent.len());
    let is_same = |((_, stored), sent): (&(usize, Said), &Said)| stored.has(sent);
    let ends = (first..stored.len()).filter_map(|from| stored.get(from..));
    let mut ends = ends.filter(|end| end.iter().zip(sent).take(1).all(is_same)).take(MOST_KNOWN);
    ends.find(|end| end.iter().zip(sent).all(is_same)).map_or(0, <[(usize, Said)]>::len)
}

/// Returns what a client has kept of each turn. What stands before its first message of the user comes first.
fn sent_turns(history: &[SentMessage]) -> Result<Vec<SentTurn>, Refusal> {
    let (mut turns, mut turn) = (Vec::new(), SentTurn::default());
    for message in history {
        match message {
            SentMessage::User(content) => {
                let message = content.read()?;
                if !is_empty(&message) {
                    let next = SentTurn { said: Some(Said::new(&message)), ..SentTurn::default() };
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
