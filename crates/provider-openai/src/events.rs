//! The deltas of a response body, as they come.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use advisor_core::{Batches, Delta, DeltaKind, Error, ErrorKind, Result};
use futures::Stream;

use crate::answer::{AnswerDecoder, End};
use provider_http::timeouts::{Clock, Deadline, TimedBody, TimedOut, Timeouts};

/// How long the body may stay open after the end marker, after which only usage can come: as long as a connection is worth.
const LONGEST_DRAIN: Duration = Duration::from_millis(250);
/// How many deltas that show nothing are kept while the first that does is waited for.
const MOST_AHEAD: usize = 64;

/// The deltas of one response body.
///
/// How it ends, by what came last:
///
/// | the body | the deltas |
/// | --- | --- |
/// | ends | end; whether the answer is complete is the aggregator's to say |
/// | stays open or breaks after the finish reason or the end marker | end: at once when it breaks, else when nothing was added to the answer for the grace |
/// | breaks before | an error |
/// | holds an error or what is no answer | an error, and the body is let go |
pub(crate) struct DeltaStream {
    /// Gone once the body has ended, or nobody wants more of it.
    body: Option<TimedBody>,
    decoder: AnswerDecoder,
    /// What came while the first delta that shows something was waited for.
    ahead: VecDeque<Delta>,
    /// Why the body broke.
    broken: Option<Error>,
    /// How many events were seen when the clocks were last set.
    events: u64,
    progress: Deadline,
    whole_body: Deadline,
    grace: Deadline,
    drain: Deadline,
}

impl DeltaStream {
    /// The deltas of `body`. `grace` is for how long more may come after the finish reason, or after what was added since.
    pub(crate) fn new(body: TimedBody, decoder: AnswerDecoder, timeouts: &Timeouts, grace: Duration) -> Self {
        Self {
            body: Some(body),
            decoder,
            ahead: VecDeque::new(),
            broken: None,
            events: 0,
            progress: Deadline::new(Clock::Progress, timeouts.progress),
            whole_body: Deadline::new(Clock::WholeBody, timeouts.whole_body),
            grace: Deadline::new(Clock::Idle, Some(grace)),
            drain: Deadline::new(Clock::Idle, Some(grace.min(LONGEST_DRAIN))),
        }
    }

    /// Waits for the first delta that shows something, or for the end marker or the end. Until then asking again shows nothing twice.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        while self.ahead.len() < MOST_AHEAD {
            let Some(delta) = poll_fn(|cx| self.poll_delta(cx)).await.transpose()? else {
                return Ok(());
            };
            let decides = shows(&delta.kind) || delta.kind == DeltaKind::Done;
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
                Some(Ok(delta)) => {
                    if says_more(&delta.kind) {
                        self.grace.stop();
                    }
                    return Poll::Ready(Some(Ok(delta)));
                }
                Some(Err(error)) => {
                    // That a broken body cannot be read to its end is no news; what the server had said is.
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

    /// An event came: what waited for one waits for the next. The grace waits for more of the answer, and the drain for the end
    /// of the body, whatever else comes.
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
            End::Finished => self.grace.poll_elapsed(cx),
            End::Done => self.drain.poll_elapsed(cx),
        }
    }
}

/// Whether the aggregator makes a chunk of it when nothing came before but deltas of which it makes none. A reason to finish is
/// none, and a call is shown when it has a name.
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
        | DeltaKind::Done => false,
        _ => true,
    }
}

/// Whether a delta adds to the answer. Counts, reasons to finish and empty pieces may be repeated for as long as a connection is
/// open.
fn says_more(kind: &DeltaKind) -> bool {
    match kind {
        DeltaKind::ToolCalls(fragments) => {
            fragments.iter().any(|call| call.name.is_some() || call.arguments_delta.is_some())
        }
        DeltaKind::Arguments { .. } => true,
        kind => shows(kind),
    }
}

impl Stream for DeltaStream {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(delta) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(delta)));
        }
        self.poll_delta(cx)
    }
}

impl Batches<Delta> for DeltaStream {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Delta>) {
        if self.ahead.is_empty() {
            self.decoder.take_ready(ready);
            self.set_clocks();
        }
        if ready.iter().any(|delta| says_more(&delta.kind)) {
            self.grace.stop();
        }
    }
}

impl fmt::Debug for DeltaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaStream").field("end", &self.decoder.end()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
