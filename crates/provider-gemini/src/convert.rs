//! Converts one event to deltas.
//!
//! [`Converter`] keeps the data that later events refer to: the numbers of calls, and the call whose arguments
//! continue. The aggregator does everything else that needs more than one event.
//!
//! **Order** within an event: its parts as they are listed, sources, token counts, finish reason.

mod arguments;
mod calls;
mod candidate;
mod finish;
mod json_path;
mod part;
mod sources;

use std::collections::VecDeque;

use advisor_core::{Delta, Finish, FinishReason, Text};
use provider_http::failure::Report;

use crate::wire::{Object, TokenCounts};
use candidate::Candidate;

/// Turns events of one answer into deltas.
#[derive(Debug)]
pub(crate) struct Converter {
    sent_origin: bool,
    counts: TokenCounts,
    candidate: Candidate,
}

/// The meaning of an event beside its deltas.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    /// The failure that the event reports.
    pub(crate) failure: Option<Report>,
    /// Whether the event changed the meaning of events with arguments.
    pub(crate) changes_calls: bool,
}

impl Converter {
    /// Creates a converter. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text) -> Self {
        Self { sent_origin: false, counts: TokenCounts::default(), candidate: Candidate::new(format) }
    }

    /// Appends the deltas of an event to `deltas`. Beside a failure, finish reasons are dropped.
    pub(crate) fn convert(&mut self, event: &Object<'_>, deltas: &mut VecDeque<Delta>) -> Converted {
        self.origin(event, deltas);
        let mut converted = Converted::default();
        let mut ends = Vec::new();
        if let Some(fields) = event.list("candidates").into_iter().find_map(Object::read) {
            let candidate = &mut self.candidate;
            candidate.content(&fields, &mut |delta: Delta| deltas.push_back(delta));
            converted.changes_calls |= candidate.calls.take_changed();
            match candidate.end(&fields) {
                Ok(end) => ends.extend(end.map(Delta::finish)),
                Err(report) => converted.failure = converted.failure.or(Some(*report)),
            }
        }
        let counts = event.object("usageMetadata").and_then(|counts| self.counts.update(&counts));
        deltas.extend(counts.map(Delta::usage));
        if converted.failure.is_none() {
            deltas.extend(blocked_prompt(event).map(Delta::finish).into_iter().chain(ends));
        }
        converted
    }

    /// Appends the deltas of the answer's end: a call without its end must not run.
    pub(crate) fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.candidate.calls.abandon(&mut |delta: Delta| deltas.push_back(delta));
    }

    fn origin(&mut self, event: &Object<'_>, deltas: &mut VecDeque<Delta>) {
        let word = |name: &str| event.text(name).map(|word| word.as_ref().into());
        let (id, model) = (word("responseId"), word("modelVersion"));
        if !self.sent_origin && (id.is_some() || model.is_some()) {
            self.sent_origin = true;
            deltas.push_back(Delta::origin(id, model));
        }
    }
}

/// Returns the end of an answer whose prompt was blocked. Such an answer has no candidates.
fn blocked_prompt(event: &Object<'_>) -> Option<Finish> {
    let reason = event.object("promptFeedback")?.text("blockReason")?;
    Some(Finish::written(FinishReason::ContentFilter, reason.as_ref()))
}
