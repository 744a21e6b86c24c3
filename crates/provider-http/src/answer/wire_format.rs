//! The interface between a wire format and the shared decoder.

use std::collections::VecDeque;
use std::fmt;

use advisor_core::Delta;
use serde_json::Value;

use crate::failure::Report;
use crate::fast_path::{Field, Framing};

/// One answer in one wire format: converts its events to deltas.
///
/// A value belongs to one answer and may keep state from event to event. [`AnswerDecoder`](super::AnswerDecoder)
/// does the rest: framing, limits, the end of the answer, errors, and the fast path for events of a known form.
///
/// # Contract
/// - Parse leniently. A typed struct that rejects a field of another form ends the answer as malformed JSON. A
///   [`Value`] accepts every form; so does a struct with defaults and lenient deserializers.
/// - Names and ids become deltas as the server wrote them. Spans and logs show them,
///   so the decoder hides secrets in them, and in the model and the finish reason of an answer. Names of the request's
///   tools stay unchanged, and different ids stay different.
/// - A call without an id is [`ToolCallDelta::start(index, "", name)`](advisor_core::ToolCallDelta::start). The
///   aggregator then makes an id.
///
/// # Ordering
/// [`read`](Self::read) is called once per event, in the order of the body. Events that the fast path decodes are
/// reported by [`skipped`](Self::skipped) only. An event with token counts may be read again, for its
/// [`Usage`](advisor_core::DeltaKind::Usage) deltas alone.
///
/// The fast path takes events of the same form for equal. So every field by which [`read`](Self::read) distinguishes
/// blocks must be in [`FIELDS`](Self::FIELDS). The end of a block
/// ([`BlockEnd`](advisor_core::DeltaKind::BlockEnd)), and [`Meaning::BlockStart`], make it forget the forms so far.
///
/// # Cancellation
/// Nothing here waits.
///
/// # Errors
/// A parse error ends the answer. A failure that the server reports is a [`Meaning`], as is an event beyond a limit of
/// the format.
///
/// # Example
/// A format with one JSON object per line, such as `{"text":"Hi"}` and at the end `{"done":true}`:
/// ```
/// use std::collections::VecDeque;
/// use advisor_core::{Delta, FinishReason};
/// use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
/// use provider_http::fast_path::{Field, Framing};
/// use serde_json::Value;
///
/// #[derive(Debug)]
/// struct Lines;
///
/// impl WireFormat for Lines {
///     const FRAMING: Framing = Framing::Lines;
///     const FIELDS: &'static Field = &Field::Object(&[("text", Field::Text), ("done", Field::Read)]);
///
///     fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
///         let event: Value = serde_json::from_str(event.data)?;
///         if let Some(text) = event["text"].as_str() {
///             deltas.push_back(Delta::text(text));
///         }
///         if event["done"] == true {
///             deltas.extend([Delta::finish(FinishReason::Stop), Delta::done()]);
///         }
///         Ok(Meaning::Piece)
///     }
/// }
/// ```
pub trait WireFormat: fmt::Debug + Send + Unpin + 'static {
    /// The framing of the events of a streamed answer. A body that begins otherwise is read by its own framing: as
    /// server-sent events, lines or an array of JSON, or a web page. The fast path then decodes less.
    const FRAMING: Framing;
    /// The fields that [`read`](Self::read) reads. From them the fast path knows which differences between events
    /// matter. [`Field::Text`] also fits reasoning, and several fields can be [`Field::Counts`].
    const FIELDS: &'static Field;
    /// The beginning of the event that ends an answer, if it is no JSON. A format whose last event is JSON pushes
    /// [`Delta::done`].
    const END_MARKER: Option<&'static str> = None;

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

    /// Returns the error in the body of a response whose status is no success; `None` if it holds none.
    fn read_report(body: &str) -> Option<Report> {
        Report::find(&serde_json::from_str::<Value>(body).ok()?)
    }

    /// Checks whether an event means the same when it comes again. While it does, the fast path learns.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// Notes that the fast path decoded this number of events, which have deltas.
    fn skipped(&mut self, _events: u64) {}
}

/// One event of an answer: the data of a server-sent event, or one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerEvent<'a> {
    /// The name of a server-sent event.
    pub name: Option<&'a str>,
    /// The data, without white space around it; not empty.
    pub data: &'a str,
}

impl<'a> AnswerEvent<'a> {
    /// Creates an event, for tests of a wire format.
    #[must_use]
    pub fn new(name: Option<&'a str>, data: &'a str) -> Self {
        Self { name, data }
    }
}

/// The meaning of an event, beside its deltas.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// A piece of a streamed answer. Events of the same form mean the same, unless [`WireFormat::is_repeatable`]
    /// denies it.
    Piece,
    /// A piece of rewritten JSON, or with a text that the format has split or held back. Nothing is learned from it.
    Rewritten,
    /// A piece that begins a block, or in another way changes the meaning of later events. The templates of earlier
    /// events are forgotten.
    BlockStart,
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
