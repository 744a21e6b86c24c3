//! The state of an answer after the events so far.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use advisor_core::{AggregatorLimits, Delta, DeltaKind, Error, FinishReason, Result, ToolCallDelta};

use super::repeat::Repeat;
use super::wire_format::{AnswerEvent, End, Framing, Meaning, WireFormat};
use crate::error::{malformed_json, too_large};
use crate::failure::{Failures, Report};
use crate::json::{value, with_plain_keys};
use crate::names::WireNames;
use crate::redaction::ServerWords;
use crate::sse::SseEvent;

/// The state of an answer after the events so far.
pub(super) struct Progress<W> {
    pub(super) deltas: VecDeque<Delta>,
    pub(super) end: End,
    pub(super) events: u64,
    /// The error to report after the deltas.
    pub(super) failed: Option<Error>,
    pub(super) failures: Failures,
    /// The tool names of the answered request.
    pub(super) tools: Option<Arc<WireNames>>,
    format: W,
    /// The most bytes that the format may keep.
    pub(super) most_kept: usize,
    /// Whether the format was asked for deltas that it held back.
    format_finished: bool,
    /// Whether a part of an answer has arrived.
    pub(super) has_answer: bool,
    /// The server's last status message. It becomes the error if no answer follows.
    status: Option<Box<Report>>,
    repeat: Repeat,
}

impl<W: WireFormat> Progress<W> {
    pub(super) fn new(format: W, failures: Failures) -> Self {
        Self {
            deltas: VecDeque::new(),
            end: End::Open,
            events: 0,
            failed: None,
            failures,
            tools: None,
            format,
            most_kept: AggregatorLimits::default().answer_bytes,
            format_finished: false,
            has_answer: false,
            status: None,
            repeat: Repeat::default(),
        }
    }

    /// Reads a server-sent event of a stream whose first byte is at `from` in the body.
    pub(super) fn read_sse(&mut self, event: SseEvent<'_>, from: u64) {
        // `read` ignores white space behind the data.
        let data = event.data.trim_ascii_start();
        if data.is_empty() {
            return;
        }
        self.events += 1;
        // An error may be plain text; one that begins as JSON and is cut says nothing.
        if event.trailing && data.starts_with('{') && value(data).is_err() {
            return;
        }
        match self.read(AnswerEvent { name: event.event, data }) {
            Ok(_) => {}
            // So is any other truncated event at the end.
            Err(_) if event.trailing => {}
            Err(error) => self.fail_with(malformed_json(&error, from + event.position)),
        }
    }

    /// Reads a JSON value of a body without other framing, at this position of the body.
    ///
    /// After the end of an answer only usage counts. An error then ends the body and is ignored by its caller.
    pub(super) fn read_value(&mut self, json: &str, position: u64) -> Result<()> {
        self.events += 1;
        let is_over = self.end == End::Done;
        let event = AnswerEvent { name: None, data: json };
        let meaning = self.read(event).map_err(|error| malformed_json(&error, position))?;
        match meaning {
            Read::Whole => self.mark_done(),
            // In a stream, an unknown value may belong to a later version. Alone it shows that the address is wrong.
            Read::Unknown if W::FRAMING == Framing::Sse && !self.has_answer && !is_over => {
                return Err(self.failures.no_answer(position, &json.into()));
            }
            Read::Unknown | Read::Piece => {}
        }
        Ok(())
    }

    fn read(&mut self, event: AnswerEvent<'_>) -> serde_json::Result<Read> {
        if is_end_marker::<W>(event.data) {
            self.mark_done();
            return Ok(Read::Piece);
        }
        if self.repeat.read(event, &mut self.format, &mut self.deltas).is_some() {
            return Ok(Read::Piece);
        }
        let event = AnswerEvent { data: event.data.trim_ascii_end(), ..event };
        if event.name == Some("error") {
            let json = value(event.data).unwrap_or_else(|_| event.data.into());
            self.fail(Report::find(&json).unwrap_or_else(|| Report::read(&json)));
            return Ok(Read::Piece);
        }
        let data = with_plain_keys(event.data);
        let event = AnswerEvent { data: &data, ..event };
        let before = self.deltas.len();
        let meaning = self.format.read(event, &mut self.deltas)?;
        if self.format.kept() > self.most_kept {
            self.fail_with(too_large(self.most_kept));
        }
        let ends = self.note_new(before);
        let mut new = self.deltas.range(before..);
        let (piece, usage) = match (new.next(), new.next().map(|delta| &delta.kind), new.next()) {
            (piece, None, None) => (piece, None),
            (piece, Some(DeltaKind::Usage(usage)), None) => (piece, Some(&**usage)),
            _ => (None, None),
        };
        match piece.filter(|_| matches!(meaning, Meaning::Piece)) {
            Some(piece) => self.repeat.note(event, piece, usage, &mut self.format),
            None => self.repeat.forget(),
        }
        // A failure counts although the same event ends the answer.
        let read = self.note_meaning(meaning);
        if ends && self.failed.is_none() {
            self.mark_done();
        }
        Ok(read)
    }

    fn note_meaning(&mut self, meaning: Meaning) -> Read {
        match meaning {
            Meaning::Unknown => return Read::Unknown,
            // The clock of progress does not restart.
            Meaning::KeepAlive => self.events = self.events.saturating_sub(1),
            Meaning::TooLarge { limit } => self.fail_with(too_large(limit)),
            Meaning::Piece | Meaning::Whole => {
                (self.has_answer, self.status) = (true, None);
                if matches!(meaning, Meaning::Whole) {
                    return Read::Whole;
                }
            }
            Meaning::Status(_) | Meaning::Message(_) if self.has_answer => {}
            Meaning::Status(report) => self.status = Some(report),
            Meaning::Message(report) | Meaning::Failure(report) => self.fail(*report),
            Meaning::Contradiction(why) => {
                self.fail_with(self.failures.protocol(None, why, &ServerWords::default()));
            }
        }
        Read::Piece
    }

    /// Searches the deltas from index `new` on for finish reasons and ends, and hides secrets in names that spans
    /// show. Returns whether the answer ends. After the end only usage counts.
    #[inline]
    fn note_new(&mut self, new: usize) -> bool {
        if self.end == End::Done {
            let late = self.deltas.split_off(new);
            self.deltas.extend(late.into_iter().filter(|delta| matches!(delta.kind, DeltaKind::Usage(_))));
            return false;
        }
        let mut is_done = false;
        for delta in self.deltas.range_mut(new..) {
            match &mut delta.kind {
                DeltaKind::ToolCalls(fragments) => {
                    for fragment in fragments {
                        show(fragment, self.tools.as_deref(), &self.failures);
                    }
                }
                DeltaKind::Origin(origin) => {
                    self.failures.hide_secrets(&mut origin.response_id);
                    self.failures.hide_secrets(&mut origin.model);
                }
                DeltaKind::Finish(finish) => {
                    self.failures.hide_secrets(&mut finish.as_written);
                    if let FinishReason::Other(reason) = &mut finish.reason {
                        self.failures.hide_secrets_in(reason);
                    }
                    self.end = End::Finished;
                }
                DeltaKind::Done => is_done = true,
                _ => {}
            }
        }
        if is_done {
            let ended = self.deltas.split_off(new);
            self.deltas.extend(ended.into_iter().filter(|delta| delta.kind != DeltaKind::Done));
        }
        is_done
    }

    /// Ends the body. If no answer arrived, the server's status message becomes the error.
    pub(super) fn fail_unanswered(&mut self) {
        if let Some(status) = self.status.take().filter(|_| self.end == End::Open) {
            self.fail(*status);
        }
    }

    /// Keeps the first error, and drops the status message. Every error of an answer passes through here. After
    /// the end marker the answer is complete, and errors are ignored.
    pub(super) fn fail_with(&mut self, error: Error) {
        if self.end != End::Done {
            self.failed.get_or_insert(error);
        }
        self.status = None;
    }

    fn fail(&mut self, report: Report) {
        self.fail_with(self.failures.in_answer(report));
    }

    /// Emits the deltas that the format held back. If they end the answer, it is done.
    pub(super) fn finish_format(&mut self) {
        if !mem::replace(&mut self.format_finished, true) && self.failed.is_none() {
            let before = self.deltas.len();
            self.format.finish(&mut self.deltas);
            if self.note_new(before) {
                self.mark_done();
            }
        }
    }

    pub(super) fn mark_done(&mut self) {
        if self.end != End::Done {
            self.finish_format();
        }
        if self.end != End::Done {
            self.repeat.forget();
            self.end = End::Done;
            self.deltas.push_back(Delta::done());
        }
    }
}

/// Hides secrets in the name and the id of a call, because spans and logs show them. An offered tool keeps its name.
fn show(fragment: &mut ToolCallDelta, tools: Option<&WireNames>, failures: &Failures) {
    if let Some(name) = &mut fragment.name {
        match tools.and_then(|tools| tools.meant_by(name)) {
            Some(tool) => *name = tool,
            None => failures.hide_secrets_in(name),
        }
    }
    if let Some(id) = &mut fragment.call_id
        && let Cow::Owned(shown) = failures.redaction().call_id(id)
    {
        *id = shown.into();
    }
}

/// The kind of an event that was read.
enum Read {
    /// A piece of an answer, or a message about it.
    Piece,
    /// A whole answer.
    Whole,
    /// JSON that is unknown to the format.
    Unknown,
}

/// Checks whether an event is the marker that ends an answer.
pub(super) fn is_end_marker<W: WireFormat>(data: &str) -> bool {
    W::END_MARKER.is_some_and(|marker| data.starts_with(marker))
}
