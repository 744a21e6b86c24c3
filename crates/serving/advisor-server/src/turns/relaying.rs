//! `Relaying`: appends a turn of this process to the relay, and stops it if another process asks.

use std::ops::ControlFlow;
use std::time::Duration;

use advisor_core::{Chunk, Error, JSON_VERSION, OnDrop, Result, StreamItem, text_with_sources};
use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::run::Run;
use crate::relay::reader::RelayLink;
use crate::relay::{Appended, Begun, RunBatch, RunEnd, TurnRun};
use crate::shared_turn::{ReaderError, TurnReader};

/// The silence after which the owner of a turn renews it, and learns whether it was asked to stop.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after an append, in which further chunks become ready for the next one. The end of the turn ends it.
const APPEND_INTERVAL: Duration = Duration::from_millis(50);

/// The pause after a call of the relay that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The number of attempts to append the end of a turn.
const LAST_ATTEMPTS: u32 = 5;

/// The items and bytes of one append, at most. One item may be larger.
const BATCH_ITEMS: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

/// Appends a turn of this process to the relay, so that other processes can read it and stop it.
///
/// It reads the turn as its readers do, and never delays it. While the relay is slow or absent, further chunks wait in
/// the bounded log of the turn, and nowhere else. The log is kept for half a minute after the turn, at most.
#[derive(Debug)]
pub(super) struct Relaying {
    link: RelayLink,
    run: TurnRun,
    /// Whether the relay has acknowledged this process as the owner.
    is_owner: bool,
    /// Whether the relay may have the run, although its turn has not started. The server waits for it before it exits.
    unstarted: Option<watch::Receiver<()>>,
    /// Whether a failure was logged.
    warned: bool,
}

/// The outcome of the relaying of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayOutcome {
    /// The relay has had the turn to its end.
    Whole,
    /// Another process owns the turn, and this one ran a copy.
    Copy,
    /// The relay has failed, or has forgotten the turn.
    Broken,
}

/// The next items of a turn.
struct Outgoing {
    run: Run,
    reader: TurnReader,
    batch: RunBatch,
    bytes: usize,
    /// The first kept chunk behind lost ones, which must not join the batch before them.
    gap: Option<u64>,
    /// Whether the turn was cancelled for another process.
    is_stopped: bool,
}

impl Relaying {
    pub(super) fn new(link: &RelayLink, run: TurnRun) -> Self {
        let link = link.with_background_timeout();
        Self { link, run, is_owner: false, unstarted: None, warned: false }
    }

    /// Begins the run before its turn starts. Returns `None` if the relay does not answer in time.
    pub(super) async fn claim(&mut self, link: &RelayLink, counted: watch::Receiver<()>) -> Option<Begun> {
        // A call whose answer nobody reads may still take effect.
        self.unstarted = Some(counted);
        let begun = link.ask(|relay| relay.begin(&self.run)).await.ok()?;
        match begun {
            Begun::Owned => self.is_owner = true,
            Begun::Elsewhere { .. } => self.unstarted = None,
        }
        Some(begun)
    }

    /// Appends the turn to its end.
    pub(super) async fn run(mut self, run: Run) -> RelayOutcome {
        self.unstarted = None;
        let turn = run.turn.clone();
        let mut outgoing = Outgoing::new(run);
        let mut attempts = LAST_ATTEMPTS;
        while attempts > 0 {
            outgoing.fill().await;
            match self.append(&outgoing.batch).await {
                Ok(ControlFlow::Break(outcome)) => return outcome,
                Ok(ControlFlow::Continue(appended)) => {
                    if appended == Appended::StopRequested && !outgoing.is_stopped {
                        outgoing.is_stopped = true;
                        turn.handle().cancel(OnDrop::KeepPartial);
                    }
                    outgoing.remove_batch();
                    // Nobody elsewhere waits longer for the end.
                    let _ = timeout(APPEND_INTERVAL, turn.handle().settled()).await;
                }
                Err(error) => {
                    attempts -= u32::from(outgoing.batch.end.is_some());
                    self.warn(&error);
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
        RelayOutcome::Broken
    }

    async fn append(&mut self, batch: &RunBatch) -> Result<ControlFlow<RelayOutcome, Appended>> {
        if !self.is_owner {
            match self.link.ask(|relay| relay.begin(&self.run)).await? {
                Begun::Owned => self.is_owner = true,
                Begun::Elsewhere { .. } => return Ok(ControlFlow::Break(RelayOutcome::Copy)),
            }
        }
        Ok(match self.link.ask(|relay| relay.append(&self.run, batch)).await? {
            Appended::Lost => ControlFlow::Break(RelayOutcome::Broken),
            _ if batch.end.is_some() => ControlFlow::Break(RelayOutcome::Whole),
            appended => ControlFlow::Continue(appended),
        })
    }

    /// Logs the first failure of the turn.
    fn warn(&mut self, error: &Error) {
        if !self.warned {
            self.warned = true;
            tracing::warn!(error = %text_with_sources(error), "other processes cannot read this turn now");
        }
    }
}

/// A request that has gone, or was refused, leaves no run in the relay: its turn can then start at once in any process.
impl Drop for Relaying {
    fn drop(&mut self) {
        let (Some(counted), Ok(runtime)) = (self.unstarted.take(), Handle::try_current()) else { return };
        let (link, run) = (self.link.clone(), self.run.clone());
        drop(runtime.spawn(async move {
            // Otherwise, it has no live owner after `TurnRun::OWNER_TTL`.
            let _ = link.ask(|relay| relay.release(&run)).await;
            drop(counted);
        }));
    }
}

impl Outgoing {
    fn new(run: Run) -> Self {
        let reader = run.turn.observe_from(0);
        let batch = RunBatch {
            items: vec![json(&StreamItem::Begin { version: JSON_VERSION })],
            ..RunBatch::default()
        };
        Self { run, reader, batch, bytes: 0, gap: None, is_stopped: false }
    }

    fn remove_batch(&mut self) {
        if let Some(first) = self.gap.take() {
            self.reader = self.run.turn.observe_from(first);
        }
        // The first item is the begin, so chunks have numbers one less.
        self.batch = RunBatch { first: self.reader.next + 1, ..RunBatch::default() };
        self.bytes = 0;
    }

    /// Adds the items that are ready. If the batch is empty, it waits for the first one, up to the time of a renewal.
    async fn fill(&mut self) {
        while !self.is_full() {
            let next = match self.batch.items.is_empty() {
                true => timeout(RENEW_INTERVAL, self.reader.next()).await.ok(),
                false => self.reader.next().now_or_never(),
            };
            match next {
                Some(Some(Err(ReaderError::Behind { first }))) => {
                    // The chunks in between are lost, and readers elsewhere notice it by the numbers.
                    self.gap = Some(first);
                    if self.batch.items.is_empty() {
                        self.remove_batch();
                    }
                }
                Some(item) => self.add(item),
                None => return,
            }
        }
    }

    fn is_full(&self) -> bool {
        let has_room = self.batch.items.len() < BATCH_ITEMS && self.bytes < BATCH_BYTES;
        self.batch.end.is_some() || self.gap.is_some() || !has_room
    }

    fn add(&mut self, item: Option<Result<Chunk, ReaderError>>) {
        let item = match item {
            Some(Ok(chunk)) => Some(StreamItem::Chunk(chunk)),
            Some(Err(ReaderError::Turn(error))) => Some(StreamItem::Error(copy(&error))),
            Some(Err(_)) | None => None,
        };
        self.batch.end = match item {
            Some(StreamItem::Chunk(_)) => None,
            _ if self.run.is_void() => Some(RunEnd::Void),
            _ => Some(RunEnd::Final),
        };
        if let Some(item) = item {
            let item = json(&item);
            self.bytes += item.len();
            self.batch.items.push(item);
        }
    }
}

/// Returns an item in JSON. A reader reports an empty one as unreadable.
fn json(item: &StreamItem) -> String {
    serde_json::to_string(item).unwrap_or_default()
}

/// Returns the parts of an error that its JSON form has.
fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.to_string());
    if error.emitted() { copy.mark_emitted() } else { copy }
}
