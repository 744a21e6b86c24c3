//! The state of an answer after the events so far.

mod arrival;
mod ending;

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, Error, FinishReason};

use super::cut_characters::CutCharacters;
use super::end::End;
use super::identifiers::Identifiers;
use super::wire_format::{AnswerEvent, Meaning, WireFormat};
use crate::error::{malformed_json, too_large};
use crate::failure::{Failures, Report};
use crate::fast_path::{Decoded, FastPath};
use crate::json::JsonDecoder;
use crate::redaction::ServerWords;
use crate::sse::{SseDecoder, SseEvent};
use arrival::Arrival;

/// The most matching events decoded at once: enough to share their fixed cost, and few enough to buffer.
pub(super) const MOST_AT_ONCE: usize = 32;

/// The state of an answer after the events so far.
pub(super) struct Progress<W> {
    pub(super) deltas: VecDeque<Delta>,
    pub(super) end: End,
    pub(super) events: u64,
    /// The error to report after the deltas.
    pub(super) failed: Option<Error>,
    pub(super) failures: Failures,
    pub(super) fast: FastPath,
    /// Names and ids of calls without secrets, because spans and logs show them.
    pub(super) identifiers: Identifiers,
    /// Halves of characters, whose other halves may begin later texts.
    characters: CutCharacters,
    format: W,
    /// Whether the format was asked for deltas that it held back.
    format_finished: bool,
    pub(super) arrival: Arrival,
    /// Whether the events are the elements of an array, whose closing bracket ends the answer.
    pub(super) is_array: bool,
}

/// The kind of an event that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadAs {
    /// A piece of an answer, or a message about it.
    Piece,
    /// A whole answer.
    Whole,
    /// JSON that is unknown to the format.
    Unknown,
}

impl<W: WireFormat> Progress<W> {
    pub(super) fn new(format: W, failures: Failures) -> Self {
        let mut fast = FastPath::new(W::FRAMING, W::FIELDS);
        if !format.is_repeatable() {
            fast.stop_learning();
        }
        Self {
            deltas: VecDeque::with_capacity(MOST_AT_ONCE),
            end: End::Open,
            events: 0,
            failed: None,
            identifiers: Identifiers::new(failures.redaction().clone()),
            failures,
            fast,
            characters: CutCharacters::default(),
            format,
            format_finished: false,
            arrival: Arrival::NOTHING,
            is_array: false,
        }
    }

    /// Reads a server-sent event of a stream whose first byte is at `from` in the body.
    pub(super) fn read_sse(&mut self, event: SseEvent<'_>, from: u64) {
        let data = event.data.trim();
        if data.is_empty() {
            return;
        }
        // Nothing follows a last event without a blank line, so its token counts could not be kept.
        if !event.trailing && self.decode_known(event.event, data) {
            return;
        }
        self.begin_event();
        if is_end_marker::<W>(data) {
            return self.mark_done();
        }
        if let Err(error) = self.read(AnswerEvent::new(event.event, data)) {
            // A truncated event at the end is ignored.
            if !event.trailing {
                self.fail_with(malformed_json(&error, from + event.position));
            }
        }
    }

    /// Reads a JSON value of a body without other framing. Returns its kind.
    pub(super) fn read_value(&mut self, json: &str) -> serde_json::Result<ReadAs> {
        if self.decode_known(None, json) {
            return Ok(ReadAs::Piece);
        }
        self.begin_event();
        if is_end_marker::<W>(json) {
            self.mark_done();
            return Ok(ReadAs::Piece);
        }
        self.read(AnswerEvent::new(None, json))
    }

    /// Decodes the next events if they match a known template. Returns false if none does.
    #[inline]
    pub(super) fn read_ahead(&mut self, decoder: &mut SseDecoder) -> bool {
        let longest = decoder.max_event_bytes();
        let Some(bytes) = decoder.peek() else { return false };
        let decoded = self.decode(bytes, longest);
        if decoded.events > 0 {
            decoder.consume(decoded.bytes, decoded.events);
        }
        decoded.events > 0
    }

    /// Does the same for values of one line each.
    pub(super) fn read_values_ahead(&mut self, decoder: &mut JsonDecoder) -> bool {
        let longest = decoder.max_value_bytes();
        let Some(bytes) = decoder.peek() else { return false };
        let decoded = self.decode(bytes, longest);
        decoder.consume(decoded.bytes);
        decoded.events > 0
    }

    fn decode(&mut self, bytes: &[u8], longest: usize) -> Decoded {
        let before = self.deltas.len();
        let decoded = self.fast.decode(bytes, longest, MOST_AT_ONCE, &mut self.deltas);
        if decoded.events > 0 {
            self.note_decoded(decoded.events, before);
        }
        decoded
    }

    fn decode_known(&mut self, name: Option<&str>, data: &str) -> bool {
        let before = self.deltas.len();
        let known = self.fast.decode_data(name, data, &mut self.deltas);
        if known {
            self.note_decoded(1, before);
        }
        known
    }

    #[inline]
    fn note_decoded(&mut self, events: u64, before: usize) {
        self.events += events;
        self.characters.settle(&mut self.deltas, before);
        self.format.skipped(events);
    }

    fn begin_event(&mut self) {
        self.emit_usage();
        self.events += 1;
    }

    fn read(&mut self, event: AnswerEvent<'_>) -> serde_json::Result<ReadAs> {
        let rewritten = self.characters.rewrite(event.data, W::FIELDS);
        let event = AnswerEvent::new(event.name, rewritten.as_deref().unwrap_or(event.data));
        let before = self.deltas.len();
        let meaning = self.format.read(event, &mut self.deltas)?;
        self.characters.settle(&mut self.deltas, before);
        let ends = self.note_new(before);
        if !self.format.is_repeatable() || self.identifiers.forgets() {
            self.fast.stop_learning();
        }
        if matches!(meaning, Meaning::Piece) && rewritten.is_none() {
            self.fast.parsed(event.name, event.data, &mut self.deltas, before);
        } else {
            self.fast.join_parsed(&mut self.deltas, before);
        }
        if matches!(meaning, Meaning::BlockStart) {
            self.fast.forget();
        }
        // A failure counts although the same event ends the answer.
        let read_as = self.note_meaning(meaning);
        if ends && self.failed.is_none() {
            self.mark_done();
        }
        Ok(read_as)
    }

    fn note_meaning(&mut self, meaning: Meaning) -> ReadAs {
        match meaning {
            Meaning::Unknown => return ReadAs::Unknown,
            // The clock of progress does not restart.
            Meaning::KeepAlive => self.events = self.events.saturating_sub(1),
            Meaning::TooLarge { limit } => self.fail_with(too_large(limit)),
            Meaning::Piece | Meaning::Rewritten | Meaning::BlockStart | Meaning::Whole => {
                self.arrival.note_answer();
                if matches!(meaning, Meaning::Whole) {
                    return ReadAs::Whole;
                }
            }
            Meaning::Status(report) => self.arrival.note_status(report),
            Meaning::Message(_) if self.arrival.has_answer() => {}
            Meaning::Message(report) | Meaning::Failure(report) => self.fail(*report),
            Meaning::Contradiction(why) => {
                self.fail_with(self.failures.protocol(None, why, &ServerWords::default()));
            }
        }
        ReadAs::Piece
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
                    fragments.iter_mut().for_each(|fragment| self.identifiers.show(fragment));
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
                    // An array is complete with its closing bracket, whatever its elements state.
                    if !self.is_array {
                        self.end = End::Finished;
                    }
                }
                DeltaKind::BlockEnd => self.fast.forget(),
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

    /// Ends the body. If no answer arrived, the server's status message becomes the error, or else the element of
    /// an array that is no answer.
    pub(super) fn fail_unanswered(&mut self) {
        let Arrival::Nothing { status, no_answer } = &mut self.arrival else { return };
        match (status.take(), no_answer.take()) {
            _ if self.end != End::Open => {}
            (Some(status), _) => self.fail(*status),
            (None, Some(error)) => self.fail_with(error),
            (None, None) => {}
        }
    }

    /// Keeps the first error, and drops the status message. Every error of an answer passes through here. After
    /// the end marker the answer is complete, and errors are ignored.
    pub(super) fn fail_with(&mut self, error: Error) {
        if self.end != End::Done {
            self.failed.get_or_insert(error);
        }
        self.arrival.forget_status();
    }

    fn fail(&mut self, report: Report) {
        self.fail_with(self.failures.in_answer(report));
    }
}

/// Checks whether an event is the marker that ends an answer.
pub(super) fn is_end_marker<W: WireFormat>(data: &str) -> bool {
    W::END_MARKER.is_some_and(|marker| data.starts_with(marker))
}
