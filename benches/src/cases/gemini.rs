//! Answers of Gemini's own API: from bytes to chunks.

use advisor_chain::ChatClient;
use advisor_chain::gemini::GeminiModel;
use bytes::Bytes;

use super::Case;
use super::answers::{CHUNKS, reading_all};
use crate::InMemory;
use crate::shapes::{EVENTS_A_READ, WORDS};

/// The name of each case, and the part of its events. `WORD` stands for the next piece.
const PARTS: [(&str, &str); 2] = [
    ("read, Gemini", r#"{"text": "WORD"}"#),
    ("read, Gemini, thoughts", r#"{"text": "WORD","thought": true}"#),
];
const END: &str = "data: {\"candidates\": [{\"finishReason\": \"STOP\",\"index\": 0}]}\r\n\r\n";

pub(super) fn cases() -> impl Iterator<Item = Case> {
    PARTS.into_iter().map(|(name, part)| {
        Case::new(name, "event", CHUNKS, move |events| {
            let model = GeminiModel::new("m").with_transport(InMemory::new([body(part, events)]));
            reading_all(ChatClient::builder(model).build().unwrap(), events)
        })
    })
}

/// Returns a body with `events` of these events, with the line ends that Google sends.
fn body(part: &'static str, events: usize) -> Vec<Bytes> {
    let word = |number: usize| WORDS.get(number % WORDS.len()).copied().unwrap_or_default();
    let said: Vec<String> =
        (0..events).map(|number| event(&part.replace("WORD", word(number)), 1000 + number)).collect();
    let reads = said.chunks(EVENTS_A_READ).map(|read| Bytes::from(read.concat()));
    reads.chain([Bytes::from_static(END.as_bytes())]).collect()
}

fn event(part: &str, count: usize) -> String {
    let counts = format!(
        r#"{{"promptTokenCount": 34,"candidatesTokenCount": {count},"totalTokenCount": 1{count},"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 34}}]}}"#
    );
    format!(
        "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{part}],\"role\": \"model\"}},\"index\": 0}}],\"usageMetadata\": {counts},\"modelVersion\": \"gemini-2.5-pro\",\"responseId\": \"beHBaJfEMIi-qtsP3769-Q8\"}}\r\n\r\n"
    )
}
