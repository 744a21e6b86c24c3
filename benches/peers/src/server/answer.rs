//! `Answer`: the HTTP answer of a scenario, and where its writes are cut.

use std::io::Write;

use peer_measure::{Kind, Scenario};

use super::events;

/// Head of every answer.
pub(super) const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
/// The end of a chunked body.
pub(super) const END: &[u8] = b"0\r\n\r\n";
/// Events a write where the scenario does not say.
const BATCH: usize = 16;

/// A whole HTTP answer, and where its writes are cut.
pub(super) struct Answer {
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

impl Answer {
    /// The answer to a request of `round`, counted from 0.
    pub(super) fn new(scenario: Scenario, round: usize) -> Self {
        let Scenario { kind, count, by } = scenario;
        let (events, batch) = match kind {
            Kind::Text | Kind::Paced => (events::text(count), by),
            Kind::Obfuscated => (events::obfuscated(count), by),
            Kind::Usage => (events::usage_on_each(count), by),
            Kind::Reasoning => (events::reasoning(count), by),
            Kind::Arguments if round == 0 => (events::long_arguments(count), by),
            Kind::Tools if round < count => (events::calls(round, by), BATCH),
            Kind::Arguments | Kind::Tools => (events::last_words(), BATCH),
        };
        Self::framed(&events, batch.max(1))
    }

    /// Returns the pieces of the body, each of which is one write.
    pub(super) fn writes(&self) -> impl Iterator<Item = &[u8]> {
        self.cuts.windows(2).map(|cut| &self.bytes[cut[0]..cut[1]])
    }

    fn framed(events: &[String], batch: usize) -> Self {
        let mut answer = Self { bytes: HEAD.to_vec(), cuts: vec![0, HEAD.len()] };
        for batch in events.chunks(batch) {
            write_chunk(&mut answer.bytes, &batch.concat());
            answer.cuts.push(answer.bytes.len());
        }
        answer.bytes.extend_from_slice(END);
        // The end goes with the last events.
        answer.cuts.pop();
        answer.cuts.push(answer.bytes.len());
        answer
    }
}

/// Appends one chunk of HTTP's chunked encoding.
pub(super) fn write_chunk(bytes: &mut Vec<u8>, data: &str) {
    write!(bytes, "{:x}\r\n{data}\r\n", data.len()).expect("a vector takes everything");
}
