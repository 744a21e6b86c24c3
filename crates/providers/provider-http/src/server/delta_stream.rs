//! The deltas of a response body, as they arrive.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use advisor_core::{Delta, DeltaKind, Error, ErrorKind, ProviderData, Result};
use futures::Stream;

use crate::answer::{AnswerDecoder, End, WireFormat};
use crate::timeouts::{Clock, Deadline, TimedBody, TimedOut, Timeouts};

/// The time for which the body may stay open after the end marker, when only usage can follow. A reused connection
/// is not worth a longer wait.
const LONGEST_DRAIN: Duration = Duration::from_millis(250);
/// The most deltas that show nothing and are kept while waiting for the first that does.
const MOST_AHEAD: usize = 64;
/// The most bytes of such deltas. Fragments of calls without a name, and finish reasons, may be long.
const MOST_BYTES_AHEAD: usize = 64 << 10;

/// The deltas of one response body.
///
/// The end of the deltas depends on the last state of the body:
///
/// | the body | the deltas |
/// | --- | --- |
/// | ends | end; the aggregator decides whether the answer is complete |
/// | breaks after the finish reason or the end marker | end at once |
/// | stays open after the finish reason or the end marker | end when the timeout has passed without an addition |
/// | breaks before | an error |
/// | holds an error or no answer | an error, and the body is released |
pub(super) struct DeltaStream<W> {
    /// The body. `None` once it has ended.
    body: Option<TimedBody>,
    decoder: AnswerDecoder<W>,
    /// Deltas that arrived while waiting for the first that shows something.
    ahead: VecDeque<Delta>,
    /// The reason why the body broke.
    broken: Option<Error>,
    /// The number of events when the timeouts were last set.
    events: u64,
    progress: Deadline,
    whole_body: Deadline,
    after_finish: Deadline,
    drain: Deadline,
}

impl<W: WireFormat> DeltaStream<W> {
    /// Creates the deltas of `body`.
    pub(super) fn new(body: TimedBody, decoder: AnswerDecoder<W>, timeouts: &Timeouts) -> Self {
        Self {
            body: Some(body),
            decoder,
            ahead: VecDeque::new(),
            broken: None,
            events: 0,
            progress: Deadline::new(Clock::Progress, timeouts.progress_timeout),
            whole_body: Deadline::new(Clock::WholeBody, timeouts.whole_body_timeout),
            after_finish: Deadline::new(Clock::Idle, Some(timeouts.after_finish_timeout)),
            drain: Deadline::new(Clock::Idle, Some(timeouts.after_finish_timeout.min(LONGEST_DRAIN))),
        }
    }

    /// Waits for the first delta that shows something, the end marker, the end, or a full buffer. Until then a
    /// retry shows nothing twice.
    pub(super) async fn begin(&mut self) -> Result<()> {
        let mut bytes = 0_usize;
        while self.ahead.len() < MOST_AHEAD && bytes < MOST_BYTES_AHEAD {
            let Some(delta) = poll_fn(|cx| self.poll_delta(cx)).await.transpose()? else {
                return Ok(());
            };
            let decides = shows(&delta.kind) || delta.kind == DeltaKind::Done;
            bytes = bytes.saturating_add(length(&delta.kind));
            self.ahead.push_back(delta);
            if decides {
                return Ok(());
            }
        }
        Ok(())
    }

    fn poll_delta(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta>>> {
        loop {
            let delta = self.decoder.next();
            self.set_clocks();
            match delta {
                Some(Ok(ref new)) => {
                    if self.decoder.end() != End::Open && adds_content(&new.kind) {
                        self.after_finish.stop();
                    }
                    return Poll::Ready(delta);
                }
                Some(Err(error)) => {
                    // A broken body was also cut, so the break is reported. Any other error from the server's
                    // data takes precedence.
                    let cut = error.kind() == ErrorKind::Truncated;
                    return Poll::Ready(Some(Err(self.broken.take().filter(|_| cut).unwrap_or(error))));
                }
                None => {}
            }
            let Some(body) = &mut self.body else {
                let broken = self.broken.take().filter(|_| self.decoder.end() == End::Open);
                return Poll::Ready(broken.map(Err));
            };
            match Pin::new(body).poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.decoder.push(bytes),
                Poll::Ready(Some(Err(error))) => {
                    self.broken = Some(self.decoder.failures().transport(error));
                    self.end();
                }
                Poll::Ready(None) => self.end(),
                Poll::Pending => {
                    let Poll::Ready(timed_out) = self.poll_clocks(cx) else { return Poll::Pending };
                    self.broken = Some(self.decoder.failures().transport(timed_out.into()));
                    self.end();
                }
            }
        }
    }

    fn end(&mut self) {
        self.body = None;
        self.decoder.finish();
    }

    /// Restarts the progress timeout if an event arrived. `after_finish` waits for more of the answer, and
    /// `drain` for the end of the body; other events do not restart them.
    fn set_clocks(&mut self) {
        if self.decoder.events() != self.events {
            self.events = self.decoder.events();
            self.progress.stop();
        }
    }

    fn poll_clocks(&mut self, cx: &mut Context<'_>) -> Poll<TimedOut> {
        match self.decoder.end() {
            End::Open => match self.progress.poll_elapsed(cx) {
                Poll::Pending if self.decoder.is_whole() => self.whole_body.poll_elapsed(cx),
                progress => progress,
            },
            End::Finished => self.after_finish.poll_elapsed(cx),
            End::Done => self.drain.poll_elapsed(cx),
        }
    }
}

/// Checks whether the aggregator makes a chunk of this delta if it has made none before. A finish reason makes
/// none, and a call makes one once it has a name.
fn shows(kind: &DeltaKind) -> bool {
    match kind {
        DeltaKind::Text(text) | DeltaKind::Reasoning(text) | DeltaKind::Refusal(text) => !text.is_empty(),
        DeltaKind::ToolCalls(fragments) => {
            fragments.iter().any(|call| call.name.as_ref().is_some_and(|name| !name.is_empty()))
        }
        DeltaKind::Arguments { .. }
        | DeltaKind::Usage(_)
        | DeltaKind::Origin(_)
        | DeltaKind::Finish(_)
        | DeltaKind::BlockEnd
        | DeltaKind::Done => false,
        _ => true,
    }
}

/// Returns the number of bytes in a delta that shows nothing.
fn length(kind: &DeltaKind) -> usize {
    let of_data = |data: &ProviderData| data.value.to_string().len();
    match kind {
        DeltaKind::Arguments { text, .. } => text.len(),
        DeltaKind::ToolCalls(fragments) => {
            let arguments =
                fragments.iter().filter_map(|call| call.arguments_delta.as_ref()).map(|text| text.len());
            let ids = fragments.iter().filter_map(|call| call.call_id.as_ref()).map(|id| id.len());
            let data = fragments.iter().filter_map(|call| call.provider_data.as_ref()).map(of_data);
            arguments.chain(ids).chain(data).sum()
        }
        DeltaKind::Finish(finish) => finish.as_written.as_ref().map_or(0, |reason| reason.len()),
        DeltaKind::BlockData(data) => of_data(data),
        _ => 0,
    }
}

/// Checks whether a delta adds to the answer. Servers may repeat counts, finish reasons and empty pieces while
/// the connection is open.
fn adds_content(kind: &DeltaKind) -> bool {
    match kind {
        DeltaKind::ToolCalls(fragments) => {
            fragments.iter().any(|call| call.name.is_some() || call.arguments_delta.is_some())
        }
        DeltaKind::Arguments { .. } => true,
        kind => shows(kind),
    }
}

impl<W: WireFormat> Stream for DeltaStream<W> {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(delta) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(delta)));
        }
        self.poll_delta(cx)
    }
}

impl<W: WireFormat> fmt::Debug for DeltaStream<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaStream").field("end", &self.decoder.end()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
