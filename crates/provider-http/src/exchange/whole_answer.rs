//! Answers that are no stream: one JSON value, read whole.

use advisor_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Call, HttpClient};
use crate::error::{malformed_json, not_utf8};
use crate::failure::{Failures, Report};
use crate::redaction::{Redaction, ServerWords};
use crate::timeouts::{Clock, Deadline, TimedBody};

/// Reads the error in a body; `None` if it holds none.
fn read_report(body: &str) -> Option<Report> {
    Report::find(&serde_json::from_str::<Value>(body).ok()?)
}

impl HttpClient {
    /// Sends the call, and reads the answer whole, as one JSON value. Retries while the failure is transient.
    ///
    /// The bound for an event limits the body, and [`Timeouts`](crate::timeouts::Timeouts) apply: the first byte, each
    /// further one, and the whole body.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    ///
    /// # Errors
    /// As those of [`stream`](Self::stream). JSON of another form is an error of kind
    /// [`Protocol`](ErrorKind::Protocol).
    pub async fn json<T: DeserializeOwned>(&self, call: &Call, redaction: &Redaction) -> Result<T> {
        let failures = Failures::new(redaction.clone());
        let mut waits = self.retries.waits();
        let mut attempt = 0_u32;
        loop {
            attempt += 1;
            match self.whole_attempt(call, &failures, attempt).await {
                Ok(answer) => return Ok(answer),
                Err(error) => tokio::time::sleep(self.wait_after(error, attempt, &mut waits)?).await,
            }
        }
    }

    async fn whole_attempt<T: DeserializeOwned>(
        &self,
        call: &Call,
        failures: &Failures,
        attempt: u32,
    ) -> Result<T> {
        let (_, body) = self.send(call, failures, attempt, read_report).await?;
        let mut deadline = Deadline::new(Clock::WholeBody, self.timeouts.whole_body_timeout);
        let reading = read(body.into_answer(), self.limits.event, failures);
        let bytes = deadline.limit(reading).await.map_err(|late| failures.transport(late.into()))??;
        let body = std::str::from_utf8(&bytes).map_err(|error| not_utf8(error.valid_up_to() as u64))?;
        serde_json::from_str(body).map_err(|error| not_the_answer(body, &error, failures))
    }
}

/// Reads a body of at most `longest` bytes.
async fn read(mut body: TimedBody, longest: usize, failures: &Failures) -> Result<Vec<u8>> {
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
    if let Some(report) = read_report(body) {
        return failures.in_answer(report);
    }
    let words = ServerWords::from(body);
    match body.trim_start().chars().next() {
        Some('<') => failures.web_page(&words),
        Some('{' | '[') if error.is_data() => failures.no_answer(0, &words),
        _ => malformed_json(error, 0),
    }
}
