//! The arrival of an answer, and the messages of a server that sends none.

use advisor_core::Error;

use crate::failure::Report;

/// Whether a part of an answer has arrived.
pub(in crate::answer) enum Arrival {
    /// None, but perhaps messages that become the error if no answer follows.
    Nothing {
        /// The server's status message.
        status: Option<Box<Report>>,
        /// The error of the first element of an array that is no answer.
        no_answer: Option<Error>,
    },
    Answer,
}

impl Arrival {
    pub(super) const NOTHING: Self = Self::Nothing { status: None, no_answer: None };

    pub(in crate::answer) fn has_answer(&self) -> bool {
        matches!(self, Self::Answer)
    }

    /// Notes a part of an answer. Earlier messages do not matter any more.
    pub(super) fn note_answer(&mut self) {
        if !self.has_answer() {
            *self = Self::Answer;
        }
    }

    /// Keeps the last status message, unless an answer has arrived.
    pub(super) fn note_status(&mut self, report: Box<Report>) {
        if let Self::Nothing { status, .. } = self {
            *status = Some(report);
        }
    }

    /// Keeps the first error of an element that is no answer, unless an answer has arrived.
    pub(in crate::answer) fn note_no_answer(&mut self, error: Error) {
        if let Self::Nothing { no_answer, .. } = self {
            no_answer.get_or_insert(error);
        }
    }

    pub(super) fn forget_status(&mut self) {
        if let Self::Nothing { status, .. } = self {
            *status = None;
        }
    }
}
