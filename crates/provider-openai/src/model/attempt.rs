//! One request, retried until a part of its answer can be shown.

use std::time::Duration;

use advisor_core::{Error, Result};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Uri};

use super::{OpenAiModel, address, secrets};
use crate::answer::AnswerDecoder;
use crate::events::DeltaStream;
use crate::failure::{Failed, Failures, Logged};
use crate::profile::TextMode;
use crate::request::Body;
use provider_http::redaction::ServerWords;
use provider_http::timeouts;

/// The most bytes read of a response that reports a failure.
const LONGEST_REPORT: usize = 64 << 10;

const COMPRESSED: &str = "the provider's answer is compressed, which was not asked for; switch compression off for this \
    address at the server, or at the proxy in front of it";

/// A request that can be sent repeatedly.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    pub(super) text: TextMode,
}

impl OpenAiModel {
    /// Sends the request, and retries while nothing was shown and the failure is transient.
    pub(super) async fn answer(&self, call: &Call) -> Result<DeltaStream> {
        let failures = Failures::new(self.redaction.get_or_init(|| secrets::of(self)).clone());
        let mut waits = self.retries.waits();
        let mut attempt = 0_u32;
        loop {
            attempt += 1;
            let Failed { error, asked } = match self.attempt(call, &failures, attempt).await {
                Ok(deltas) => return Ok(deltas),
                Err(failed) => failed,
            };
            let wait = if error.is_retryable() { waits.next_wait(asked) } else { None };
            log(attempt, &error, wait);
            let Some(wait) = wait else { return Err(error) };
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, call: &Call, failures: &Failures, attempt: u32) -> Result<DeltaStream, Failed> {
        let mut request = Request::new(call.body.json.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        tracing::debug!(
            attempt,
            host = address::host(&self.base_url),
            bytes = call.body.json.iter().map(Bytes::len).sum::<usize>(),
            "asking the model"
        );

        let response = timeouts::send(self.transport()?, request, &self.timeouts).await;
        let response = response.map_err(|error| failures.transport(error))?;
        let (head, body) = response.into_parts();
        tracing::debug!(attempt, status = head.status.as_u16(), "the provider answers");
        let compressed = is_compressed(&head.headers);
        if !head.status.is_success() {
            let report = if compressed { Vec::new() } else { body.into_report(LONGEST_REPORT).await };
            return Err(failures.response(head.status, &head.headers, &report));
        }
        if compressed {
            return Err(failures.protocol(None, COMPRESSED, &ServerWords::default()).into());
        }
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let decoder = AnswerDecoder::new(call.body.choices, call.text, self.sse_limits, failures.clone())
            .with_content_type(content_type.unwrap_or_default())
            .with_names(&call.body.names);
        let mut deltas = DeltaStream::new(body.into_answer(), decoder, &self.timeouts, self.grace);
        deltas.begin().await?;
        Ok(deltas)
    }
}

/// Logs that an attempt failed, the reason without any content, and whether another attempt follows.
fn log(attempt: u32, error: &Error, wait: Option<Duration>) {
    let (kind, Logged { status, code, kind: r#type, param }) = (error.kind(), Logged::of(error));
    match wait {
        None => tracing::warn!(attempt, ?kind, status, code, r#type, param, "the model call failed"),
        Some(wait) => {
            let wait_ms = wait.as_millis() as u64;
            tracing::warn!(attempt, ?kind, status, code, r#type, param, wait_ms, "asking the model again");
        }
    }
}

/// Checks whether the body is compressed. Other codings in the header, such as character sets, do not count.
fn is_compressed(headers: &HeaderMap) -> bool {
    let named = headers.get_all(CONTENT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let compressions = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
        compressions.iter().any(|compression| coding.trim().eq_ignore_ascii_case(compression))
    })
}
