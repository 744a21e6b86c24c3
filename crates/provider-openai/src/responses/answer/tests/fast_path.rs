//! Events that match a template give the same deltas as when they are parsed.

use advisor_test_support::decoding::{self, assert_decoded_as_parsed};
use advisor_test_support::recordings;

use super::*;

#[test]
fn law_s5_recordings_yield_same_result_on_fast_path() {
    let (mut events, mut fast) = (0, 0);
    for recording in &recordings::all("openai-responses") {
        assert_decoded_as_parsed(decoder, &recording.body, &recording.name);
        let these = fast_events_in(&recording.body);
        let all = recording.body.windows(6).filter(|bytes| bytes == b"data: ").count();
        println!("{}: {these} of {all}", recording.name);
        (events, fast) = (events + all, fast + these);
    }
    println!("{fast} of {events} events are not parsed");
    assert!(events == 0 || fast * 2 > events, "{fast} of {events}");
}

/// Returns the number of events in a stream that are read without being parsed.
fn fast_events_in(body: &[u8]) -> usize {
    decoding::fast_events(Responses::new("f"), body) as usize
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
