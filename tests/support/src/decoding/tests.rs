//! Tests of `decoding`.

use std::cell::Cell;
use std::collections::VecDeque;

use advisor_core::{Delta, FinishReason};
use provider_http::answer::{AnswerDecoder, AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::Value;

use super::*;

/// A format of lines that begins each answer with a fixed text.
#[derive(Debug)]
struct Lines(&'static str);

impl WireFormat for Lines {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        let first = std::mem::take(&mut self.0);
        deltas.extend(Some(first).filter(|text| !text.is_empty()).map(Delta::text));
        deltas.extend(event["say"].as_str().map(Delta::text));
        deltas.extend(event["over"].as_bool().map(|_| Delta::finish(FinishReason::Stop)));
        Ok(Meaning::Piece)
    }
}

const BODY: &[u8] = b"{\"say\":\"a\"}\n{\"say\":\"b\"}\n{\"say\":\"c\"}\n{\"say\":\"d\"}\n{\"over\":true}\n";

fn decoder(first: &'static str) -> AnswerDecoder<Lines> {
    AnswerDecoder::new(Lines(first), SseLimits::default(), Redaction::default())
}

#[test]
#[should_panic(expected = "changing")]
fn other_deltas_are_noticed() {
    let count = Cell::new(0);
    let changing = || {
        count.set(count.get() + 1);
        decoder(if count.get() > 1 { "!" } else { "" })
    };
    assert_same_at_any_split(changing, BODY, "changing");
}
