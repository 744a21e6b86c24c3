//! Answers that are no stream: one JSON value, read whole.

use advisor_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use crate::error::{malformed_json, not_utf8};
use crate::failure::{Failures, Report};
use crate::redaction::ServerWords;
use crate::timeouts::{Clock, Deadline, TimedBody, Timeouts};

/// Reads a body of at most `longest` bytes as JSON.
pub(super) async fn read<T: DeserializeOwned>(
    body: TimedBody,
    timeouts: &Timeouts,
    longest: usize,
    failures: &Failures,
) -> Result<T> {
    let mut deadline = Deadline::new(Clock::WholeBody, timeouts.whole_body_timeout);
    let reading = deadline.limit(bytes_of(body, longest, failures));
    let bytes = reading.await.map_err(|late| failures.transport(late.into()))??;
    let body = std::str::from_utf8(&bytes).map_err(|error| not_utf8(error.valid_up_to() as u64))?;
    serde_json::from_str(body).map_err(|error| not_the_answer(body, &error, failures))
}

async fn bytes_of(mut body: TimedBody, longest: usize, failures: &Failures) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| failures.transport(error))?;
        if bytes.len() + piece.len() > longest {
            let message =
                format!("the answer is longer than {longest} bytes; raise the bound in `SseLimits`");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Returns the error of a body that is not the expected JSON.
fn not_the_answer(body: &str, error: &serde_json::Error, failures: &Failures) -> Error {
    if let Some(report) = Report::in_body(body) {
        return failures.in_answer(report);
    }
    let words = ServerWords::from(body);
    match body.trim_start().chars().next() {
        Some('<') => failures.web_page(&words),
        Some('{' | '[') if error.is_data() => failures.no_answer(0, &words),
        _ => malformed_json(error, 0),
    }
}
