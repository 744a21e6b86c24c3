//! Finish reasons: some end an answer, some report a failure.

use advisor_core::{Finish, FinishReason};
use provider_http::failure::Report;

// All words are of the API reference (`FinishReason` of `GenerateContentResponse`).

/// The words for an answer that a filter stopped.
const FILTERED: [&str; 11] = [
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "RECITATION_IMAGE",
];
/// The words for an answer that could not be given (Q67).
const FAILED: [&str; 7] = [
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    MISSING_SIGNATURE, "NO_IMAGE", "IMAGE_OTHER",
];
const MISSING_SIGNATURE: &str = "MISSING_THOUGHT_SIGNATURE";

/// The meaning of a finish reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The answer ends.
    Finish(Finish),
    /// The answer ends for an unknown reason. Without content it failed. A call without its end never runs; one that
    /// came whole does.
    Unknown(Finish),
    /// The answer failed.
    Failure,
}

impl End {
    /// Returns the meaning of a finish reason; `None` if it is the word for none (Q31).
    pub(super) fn from_written(written: &str) -> Option<Self> {
        let finish = |reason| Some(Self::Finish(Finish::written(reason, written)));
        match written {
            "FINISH_REASON_UNSPECIFIED" | "null" => None,
            "STOP" => finish(FinishReason::Stop),
            "MAX_TOKENS" => finish(FinishReason::Length),
            word if FILTERED.contains(&word) => finish(FinishReason::ContentFilter),
            word if FAILED.contains(&word) => Some(Self::Failure),
            word => Some(Self::Unknown(Finish::written(FinishReason::Other(word.into()), word))),
        }
    }

    /// Returns the report of a failure with this finish reason.
    pub(super) fn report(written: &str, message: &str) -> Box<Report> {
        let mut report = Report::default();
        report.message = message.into();
        report.code = Some(written.into());
        if written == MISSING_SIGNATURE {
            // The history lacks it, so the same request would fail again.
            report.status = Some(400);
        }
        Box::new(report)
    }
}
