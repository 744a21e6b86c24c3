//! The interface between a wire format and the shared decoder.

use std::collections::VecDeque;
use std::fmt;

use crate::failure::Report;
use crate::json::Json;
use advisor_core::{Delta, Usage};

/// One answer in one wire format: converts its events to deltas.
///
/// A value belongs to one answer and may keep state from event to event. [`AnswerDecoder`](super::AnswerDecoder)
/// does the rest: framing, limits, the end of the answer, and errors.
///
/// # Contract
/// - Read leniently, as [`json::read`](crate::json::read) does. A typed struct that rejects a field of another form ends
///   the answer as malformed JSON.
/// - Names and ids become deltas as the server wrote them. Spans and logs show them,
///   so the decoder hides secrets in them, and in the model and the finish reason of an answer. Names of the request's
///   tools stay unchanged, and different ids stay different.
/// - A call without an id is [`ToolCallDelta::start(index, "", name)`](advisor_core::ToolCallDelta::start). The
///   aggregator then makes an id.
///
/// # Ordering
/// [`read`](Self::read) is called once per event, in the order of the body; not for an event that
/// [repeats](Self::repeat) the one before with another text.
///
/// # Cancellation
/// Nothing here waits.
///
/// # Errors
/// A parse error ends the answer, and so does an event with the name `error`, which is not read here. A failure that the server reports is a [`Meaning`], as is an event beyond a limit of
/// the format.
///
/// # Example
/// A format with one JSON object per line, such as `{"text":"Hi"}` and at the end `{"done":true}`:
/// ```
/// use std::collections::VecDeque;
/// use advisor_core::{Delta, FinishReason};
/// use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
/// use provider_http::json::{Str, read};
///
/// #[derive(Debug)]
/// struct Lines;
///
/// impl WireFormat for Lines {
///     const FRAMING: Framing = Framing::Lines;
///
///     fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
///         let (mut text, mut done) = (Str::default(), "");
///         read(event.data, |json| {
///             json.object(|key| {
///                 if let Some(value) = key.is("text") {
///                     value.text(&mut text)
///                 } else if let Some(value) = key.is("done") {
///                     value.raw(&mut done)
///                 } else {
///                     key.skip()
///                 }
///             })
///         })?;
///         deltas.extend(text.text().map(Delta::text));
///         if done == "true" {
///             deltas.extend([Delta::finish(FinishReason::Stop), Delta::done()]);
///         }
///         Ok(Meaning::Piece)
///     }
/// }
/// ```
pub trait WireFormat: fmt::Debug + Send + Unpin + 'static {
    /// The framing of the events of a streamed answer. A body that begins otherwise is read by its own framing: as
    /// server-sent events, values of JSON, or a web page.
    const FRAMING: Framing;
    /// The beginning of the event that ends an answer, if it is no JSON. A format whose last event is JSON pushes
    /// [`Delta::done`].
    const END_MARKER: Option<&'static str> = None;

    /// Keys whose values say nothing, wherever they stand: padding, counters, times. An event that differs from the one
    /// before only in these and in its text [repeats](Self::repeat) it.
    const IGNORED: &'static [&'static str] = &[];
    /// The key of the token counts, if events have them beside their text.
    const USAGE: Option<&'static str> = None;

    /// Appends the deltas of one event to `deltas`, and returns the meaning of the event.
    ///
    /// # Errors
    /// If its data is no JSON.
    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning>;

    /// Appends deltas that were held back. Called once: before the answer is done, or when its body ends.
    ///
    /// The body may also have broken, so nothing here may end an answer that the server has not ended. After an
    /// error it is not called.
    fn finish(&mut self, _deltas: &mut VecDeque<Delta>) {}

    /// Reads the value of [`USAGE`](Self::USAGE), as [`read`](Self::read) does, which may read it once more.
    fn usage<'a>(&mut self, json: Json<'a>, _usage: &mut Option<Usage>) -> Option<Json<'a>> {
        json.skip()
    }

    /// Checks whether an event like the last one, with this text in place of its text, gives the same delta with this text,
    /// and notes such an event: it is then not read. The last one gave one piece of text, and nothing else but token counts.
    fn repeat(&mut self, _spelling: &str) -> bool {
        false
    }

    /// Returns the bytes of the answer that are kept until they can be emitted. They count as bytes of the answer, which are
    /// bounded.
    fn kept(&self) -> usize {
        0
    }
}

/// The framing of events in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value on each line.
    Lines,
}

/// The progress of an answer towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum End {
    /// The answer continues.
    Open,
    /// A finish reason came. More calls and usage may follow.
    Finished,
    /// The end came. Only usage may follow.
    Done,
}

/// One event of an answer: the data of a server-sent event, or one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerEvent<'a> {
    /// The name of a server-sent event.
    pub name: Option<&'a str>,
    /// The data, without white space around it; not empty.
    pub data: &'a str,
}

/// The meaning of an event, beside its deltas.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// A piece of a streamed answer.
    Piece,
    /// A whole answer. In a body of JSON only usage may follow.
    Whole,
    /// A sign of life without any output. It is no part of an answer, and no progress of it.
    KeepAlive,
    /// A failure of the server. It is reported after the deltas so far, also if the same event ends the answer.
    Failure(Box<Report>),
    /// A report of progress. It becomes the error if no answer follows.
    Status(Box<Report>),
    /// A message that could mean either. It is a failure if no part of an answer has arrived, and otherwise
    /// ignored.
    Message(Box<Report>),
    /// A piece that contradicts what came before it, with an explanation. It is reported after the deltas so far.
    Contradiction(&'static str),
    /// JSON that is unknown to the format.
    Unknown,
    /// The event would exceed this limit on the bytes that the format keeps. It ends the answer.
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
}
