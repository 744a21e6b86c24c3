//! `Summarizer`: running summaries made by a model; the last summary of a log, and the entries that it does not cover.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use advisor_core::{ChatClient, Error, ErrorKind, Message, Result, Role, Spawner, TurnEnd, TurnId};
use conversation_store::{Entry, EntryId, EntryKind, Summary, last_end, same_turn};
use tokio::time::timeout;

use crate::transcript::repair::{answers_to_earlier_calls, refused_part};
use crate::transcript::texts::SUMMARY;

/// Makes running summaries of long conversations, which memory sends in place of their oldest turns.
///
/// A summary is due when a turn has ended and more than `after` turns are not covered by a summary. A model then
/// summarizes the previous summary and all uncovered turns but the last `keep`. The request runs on the
/// [`Spawner`], and no turn waits for it. The summary is stored as a separate entry with the input of the next
/// turn. The turns that it covers stay in the store.
///
/// The request has at most about half a megabyte: texts over 32 KiB and turns over 256 KiB are cut. A summary that
/// fails, takes more than five minutes or is longer than 64 KiB is tried again after the next turn. The timeout
/// needs a tokio runtime with time.
///
/// While no summary covers a conversation yet, each turn reads all of it, until summaries have caught up. A
/// [`Window`](crate::Window) bounds the part that is sent meanwhile.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, Spawner};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, Summarizer};
/// # use advisor_core::{ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
/// # struct SmallModel;
/// # #[async_trait]
/// # impl ChatModel for SmallModel {
/// #     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
/// #         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("short"), FinishReason::Stop)))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let spawner = Spawner::tokio(tokio::runtime::Handle::current());
/// let mut summarizer = Summarizer::new(ChatClient::builder(SmallModel).build()?, spawner);
/// summarizer.after = 30;
/// let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_summaries(summarizer);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct Summarizer {
    client: ChatClient,
    pub(crate) spawner: Spawner,
    /// The number of uncovered turns beyond which a summary is made: 20 by default.
    pub after: usize,
    /// The number of latest turns that are sent unchanged, without a summary: 6 by default.
    pub keep: usize,
}

const INSTRUCTIONS: &str = "Summarize the conversation below for the assistant who goes on with it. Keep names, numbers, \
    decisions, open questions, what tools were asked and what they answered, and what the user wants. Say nothing else.";

/// The approximate maximum bytes of a conversation in one request; a single turn may add as many again.
const MOST: usize = 256 << 10;

/// The longest time for a summary, and its largest size in bytes.
const LONGEST: Duration = Duration::from_secs(300);
pub(crate) const LONGEST_SUMMARY: usize = 64 << 10;

impl Summarizer {
    /// Creates a summarizer that asks `client`; a small model is enough. A memory in that client would remember
    /// the summaries, too.
    pub fn new(client: ChatClient, spawner: Spawner) -> Self {
        Self { client, spawner, after: 20, keep: 6 }
    }

    /// Checks whether there are enough uncovered turns for a new summary.
    pub(crate) fn is_due(&self, turns: usize) -> bool {
        turns > self.after
    }

    /// Returns the number of turns to read, so that the last summary is usually among them.
    pub(crate) fn turns_to_read(&self) -> usize {
        self.after.saturating_add(self.keep).saturating_mul(2).saturating_add(2)
    }

    /// Summarizes all but the last turns of this log, if a summary is due.
    pub(crate) async fn summarize(&self, log: &[Entry]) -> Result<Option<Summary>> {
        let Some((until, request)) = self.request(log) else { return Ok(None) };
        let asked = self.client.prompt().system(INSTRUCTIONS).user(request).call();
        let too_slow =
            |_| Error::new(ErrorKind::Timeout, "the model did not give its summary within five minutes");
        let answer = timeout(LONGEST, asked).await.map_err(too_slow)??;
        let text = if answer.is_refusal() { String::new() } else { answer.text() };
        if text.len() > LONGEST_SUMMARY {
            let too_long = "the model's summary is longer than 64 KiB; tell it to be brief";
            return Err(Error::new(ErrorKind::TooLarge, too_long));
        }
        let text = text.trim();
        Ok((!text.is_empty()).then(|| Summary { until, text: text.into() }))
    }

    /// Returns the number of the last entry that the request covers, and the text of the request.
    fn request(&self, log: &[Entry]) -> Option<(u64, String)> {
        let last = last_summary(log);
        let log = after(log, last);
        let turns: Vec<_> = log.chunk_by(same_turn).collect();
        if !self.is_due(turns.len()) {
            return None;
        }
        let mut request =
            last.map(|last| format!("Summary of what was before:\n{}\n", last.text)).unwrap_or_default();
        let mut until = None;
        let ends = turns.iter().zip(1..turns.len()).take(turns.len().saturating_sub(self.keep));
        for (turn, next) in ends {
            append_turn(turn, &mut request);
            // Calls and their results in later turns stay together.
            if answers_to_earlier_calls(turns.iter().skip(next).copied()) == 0 {
                until = turn.last().map(|entry| (entry.seq, request.len()));
            }
            if request.len() > MOST && until.is_some() {
                break;
            }
        }
        let (until, length) = until?;
        request.truncate(length);
        Some((until, request))
    }
}

/// Appends a turn to `request`. Long texts are cut, and so is a turn of more than about `MOST` bytes.
fn append_turn(turn: &[Entry], request: &mut String) {
    if last_end(turn) == Some(&TurnEnd::RolledBack) {
        return;
    }
    let full = request.len().saturating_add(MOST);
    let refused = refused_part(turn);
    let entries = turn.iter().enumerate().filter(|(place, _)| !refused.contains(place));
    for message in entries.filter_map(|(_, entry)| entry.kind.as_message()) {
        if request.len() > full {
            request.push_str("[the rest is left out]\n");
            return;
        }
        append_message(message, request);
    }
}

fn append_message(message: &Message, request: &mut String) {
    let text = message.text();
    let (who, text) = match (message.role(), message.tool_result()) {
        (Role::User, _) => ("User", text),
        (Role::Assistant, _) => ("Assistant", text),
        (Role::Tool, Some(result)) => (result.name.as_str(), result.text()),
        _ => return,
    };
    // Writing to a string cannot fail.
    if !text.trim().is_empty() {
        let _ = writeln!(request, "{who}: {}", cut(&text));
    }
    for call in message.tool_calls() {
        let _ = writeln!(request, "Assistant calls {}: {}", call.name, cut(&call.arguments));
    }
}

/// Returns the beginning of a text that is too long.
fn cut(text: &str) -> String {
    const MOST_OF_TEXT: usize = MOST / 8;
    let beginning = text.get(..text.floor_char_boundary(MOST_OF_TEXT)).unwrap_or_default();
    if beginning.len() < text.len() { format!("{beginning} [cut]") } else { text.into() }
}

impl fmt::Debug for Summarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summarizer")
            .field("after", &self.after)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

/// A summary that is not written yet, and the turn that ends with its last entry. The turn shows that it belongs
/// to this conversation, and not to a deleted one of the same name.
#[derive(Debug, Clone)]
pub(crate) struct UnwrittenSummary {
    pub(crate) summary: Summary,
    pub(crate) turn: TurnId,
}

impl UnwrittenSummary {
    pub(crate) fn new(summary: Summary, log: &[Entry]) -> Option<Self> {
        let last = log.iter().find(|entry| entry.seq == summary.until)?;
        Some(Self { turn: last.turn.clone(), summary })
    }

    /// Checks whether the log has the last entry that the summary covers.
    pub(crate) fn belongs_to(&self, log: &[Entry]) -> bool {
        let at_end = |entry: &&Entry| entry.seq == self.summary.until;
        log.iter().find(at_end).is_some_and(|entry| entry.turn == self.turn)
    }
}

/// Returns the summary that covers the most entries.
pub(crate) fn last_summary(log: &[Entry]) -> Option<&Summary> {
    let summaries = log.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Summary(summary) => Some(summary),
        _ => None,
    });
    summaries.max_by_key(|summary| summary.until)
}

/// Returns the entries that a summary does not cover, from the first turn that answers no earlier calls. A turn
/// that begins with results belongs to the calls that they answer.
pub(crate) fn after<'a>(log: &'a [Entry], summary: Option<&Summary>) -> &'a [Entry] {
    let until = summary.map_or(0, |summary| summary.until);
    let from = log.partition_point(|entry| entry.seq <= until);
    let rest = log.get(from..).unwrap_or_default();
    if rest.first().is_none_or(|first| first.follows() == EntryId::BEGINNING) {
        return rest;
    }
    rest.get(answers_to_earlier_calls(rest.chunk_by(same_turn))..).unwrap_or_default()
}

/// Returns the message for a summary: a system message, since neither the user nor the model wrote it.
pub(crate) fn message_of(summary: &Summary) -> Message {
    Message::system(format!("{}\n{}", SUMMARY, summary.text))
}

#[cfg(test)]
pub(crate) mod tests;
