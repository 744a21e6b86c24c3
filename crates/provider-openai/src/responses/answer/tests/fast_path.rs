//! Events that match a template give the same deltas as when they are parsed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advisor_testkit::recordings;

use super::*;

fn said_by(mut decoder: Decoder, pieces: &[&[u8]]) -> Vec<Result<Delta, String>> {
    let mut said = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        said.extend(std::iter::from_fn(|| decoder.next()));
    }
    decoder.finish();
    said.extend(std::iter::from_fn(|| decoder.next()));
    said.into_iter().map(|delta| delta.map_err(|error: Error| format!("{error:?}"))).collect()
}

#[test]
fn law_s5_recordings_yield_same_result_on_fast_path() {
    let (mut events, mut fast) = (0, 0);
    for recording in &recordings::all("openai-responses") {
        let parsed = said_by(decoder().without_fast_path(), &[&recording.body]);
        assert_eq!(said_by(decoder(), &[&recording.body]), parsed, "{}", recording.name);
        let bytes: Vec<&[u8]> = recording.body.chunks(1).collect();
        assert_eq!(said_by(decoder(), &bytes), parsed, "{} byte by byte", recording.name);
        for split in split::random_splits(&recording.body, 20_261_122, 20) {
            assert_eq!(said_by(decoder(), &split.pieces), parsed, "{}: {split:?}", recording.name);
        }
        let these = fast_events_in(&recording.body);
        let all = recording.body.windows(6).filter(|bytes| bytes == b"data: ").count();
        println!("{}: {these} of {all}", recording.name);
        (events, fast) = (events + all, fast + these);
    }
    println!("{fast} of {events} events are not parsed");
    assert!(events == 0 || fast * 2 > events, "{fast} of {events}");
}

/// A format that counts the events of the fast path.
#[derive(Debug)]
struct Counting {
    format: Responses,
    skipped: Arc<AtomicU64>,
}

impl WireFormat for Counting {
    const FRAMING: Framing = Responses::FRAMING;
    const FIELDS: &'static Field = Responses::FIELDS;
    const END_MARKER: Option<&'static str> = Responses::END_MARKER;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        self.format.read(event, deltas)
    }

    fn skipped(&mut self, events: u64) {
        self.format.skipped(events);
        self.skipped.fetch_add(events, Ordering::Relaxed);
    }
}

/// Returns the number of events in a stream that are read without being parsed.
fn fast_events_in(body: &[u8]) -> usize {
    let skipped = Arc::default();
    let format = Responses::new("f");
    let counting = Counting { format, skipped: Arc::clone(&skipped) };
    let mut decoder = AnswerDecoder::new(counting, 1, SseLimits::default(), Redaction::default());
    decoder.push(Bytes::copy_from_slice(body));
    while decoder.next().is_some_and(|delta| delta.is_ok()) {}
    skipped.load(Ordering::Relaxed) as usize
}

#[test]
fn text_reasoning_and_arguments_take_the_fast_path() {
    let events = |one: &dyn Fn(i64) -> Value| -> usize {
        let events: Vec<Value> = (0..50).map(one).collect();
        fast_events_in(framed(&events).as_bytes())
    };
    let texts = events(&|n| {
        json!({"type": "response.output_text.delta", "sequence_number": n, "item_id": "msg_1", "output_index": 0,
            "content_index": 0, "delta": format!("word {n}"), "logprobs": [], "obfuscation": "x".repeat(n as usize % 7)})
    });
    let thoughts = events(&|n| {
        json!({"type": "response.reasoning_summary_text.delta", "sequence_number": n, "item_id": "rs_1",
            "output_index": 0, "summary_index": 0, "delta": format!("word {n}")})
    });
    let arguments = events(&|n| {
        json!({"type": "response.function_call_arguments.delta", "sequence_number": n, "item_id": "fc_1",
            "output_index": 0, "delta": format!("word {n}"), "obfuscation": "x"})
    });
    for fast in [texts, thoughts, arguments] {
        assert!(fast >= 40, "{texts}, {thoughts}, {arguments}");
    }
}
