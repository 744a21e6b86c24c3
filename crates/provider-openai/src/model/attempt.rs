//! One request, asked until something of its answer can be shown.

use advisor_core::Result;
use bytes::Bytes;
use futures::StreamExt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Uri};
use secrecy::{ExposeSecret, SecretString};

use super::{OpenAiModel, address};
use crate::answer::AnswerDecoder;
use crate::events::DeltaStream;
use crate::failure::{Failed, Failures, of_transport};
use crate::profile::TextMode;
use crate::request::Body;
use crate::timeouts::{self, TimedBody};

/// The most that is read of a response that reports a failure.
const LONGEST_REPORT: usize = 64 << 10;

const COMPRESSED: &str = "the provider's answer is compressed, which was not asked for; switch compression off for this \
    address at the server, or at the proxy in front of it";

/// A request, ready to be sent as often as need be.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    pub(super) text: TextMode,
}

impl OpenAiModel {
    /// Asks, and asks again as long as nothing was shown and the failure can pass.
    pub(super) async fn answer(&self, call: &Call) -> Result<DeltaStream> {
        let failures = self.failures();
        let mut waits = self.retries.waits();
        let mut attempt = 0_u32;
        loop {
            attempt += 1;
            let Failed { error, asked } = match self.attempt(call, &failures, attempt).await {
                Ok(deltas) => return Ok(deltas),
                Err(failed) => failed,
            };
            let wait = if error.is_retryable() { waits.next_wait(asked) } else { None };
            let Some(wait) = wait else {
                tracing::warn!(attempt, kind = ?error.kind(), "the model call failed");
                return Err(error);
            };
            tracing::warn!(attempt, kind = ?error.kind(), wait_ms = wait.as_millis() as u64, "asking the model again");
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

        let response =
            timeouts::send(self.transport()?, request, &self.timeouts).await.map_err(of_transport)?;
        let (head, body) = response.into_parts();
        tracing::debug!(attempt, status = head.status.as_u16(), "the provider answers");
        let compressed = is_compressed(&head.headers);
        if !head.status.is_success() {
            let report = if compressed { Vec::new() } else { beginning(body).await };
            return Err(failures.response(head.status, &head.headers, &report));
        }
        if compressed {
            return Err(failures.protocol(None, COMPRESSED.into(), "").into());
        }
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let decoder = AnswerDecoder::new(call.body.choices, call.text, self.sse_limits, failures.clone())
            .with_content_type(content_type.unwrap_or_default());
        let mut deltas = DeltaStream::new(body, decoder, self.timeouts.progress, self.grace);
        deltas.begin().await?;
        Ok(deltas)
    }

    fn failures(&self) -> Failures {
        // A header may hold its secret behind a scheme, such as `Bearer`, and an address behind `key=`.
        let headers = self.headers.iter().flat_map(|(_, value)| {
            let bare = value.expose_secret().split_once(' ').map(|(_, bare)| SecretString::from(bare.trim()));
            std::iter::once(value.clone()).chain(bare)
        });
        let query = self.base_url.split_once('?').map_or("", |(_, query)| query);
        let values = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| *name != "api-version")
            .map(|(_, value)| SecretString::from(value));
        Failures::new(self.api_key.iter().cloned().chain(headers).chain(values))
    }
}

/// Whether the body is compressed. Other codings that are named, such as character sets, are none.
fn is_compressed(headers: &HeaderMap) -> bool {
    let named = headers.get_all(CONTENT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let compressions = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
        compressions.iter().any(|compression| coding.trim().eq_ignore_ascii_case(compression))
    })
}

/// The beginning of a body; what there is of it if it breaks.
async fn beginning(mut body: TimedBody) -> Vec<u8> {
    let mut report = Vec::new();
    while let Some(Ok(bytes)) = body.next().await {
        let room = LONGEST_REPORT.saturating_sub(report.len());
        report.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
        if report.len() >= LONGEST_REPORT {
            break;
        }
    }
    report
}
