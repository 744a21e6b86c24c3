//! Counts the events that are read without being parsed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advisor_core::Delta;
use bytes::Bytes;
use provider_http::answer::{AnswerDecoder, AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;

/// A format that counts the events of the fast path.
#[derive(Debug)]
struct Counting<W> {
    format: W,
    skipped: Arc<AtomicU64>,
}

impl<W: WireFormat> WireFormat for Counting<W> {
    const FRAMING: Framing = W::FRAMING;
    const FIELDS: &'static Field = W::FIELDS;
    const END_MARKER: Option<&'static str> = W::END_MARKER;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        self.format.read(event, deltas)
    }

    fn is_repeatable(&self) -> bool {
        self.format.is_repeatable()
    }

    fn skipped(&mut self, events: u64) {
        self.format.skipped(events);
        self.skipped.fetch_add(events, Ordering::Relaxed);
    }

    fn read_report(body: &str) -> Option<Report> {
        W::read_report(body)
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.format.finish(deltas);
    }
}

/// Returns the number of events in a body that are read without being parsed.
pub fn fast_events<W: WireFormat>(format: W, body: &[u8]) -> u64 {
    let skipped = Arc::default();
    let counting = Counting { format, skipped: Arc::clone(&skipped) };
    let mut decoder = AnswerDecoder::new(counting, SseLimits::default(), Redaction::default());
    decoder.push(Bytes::copy_from_slice(body));
    while decoder.next().is_some_and(|delta| delta.is_ok()) {}
    skipped.load(Ordering::Relaxed)
}
