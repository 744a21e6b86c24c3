//! Gemini: calls without ids, a signature on the first of them, and a filter that stops an answer.

use advisor_tests::prelude::*;

use super::{Origin, events};
use crate::history::story::{ANSWER, REFUSAL, TEXT, THOUGHT};

pub(crate) const GOOGLE: Origin = Origin {
    name: "Gemini",
    server: "generativelanguage.googleapis.com",
    model: |transport| Arc::new(GeminiModel::new("gemini-3-pro").with_transport(transport)),
    answers: || vec![first(), second(), said(ANSWER), refused()],
    in_text: None,
    secrets: &["gemini-signature"],
};

fn first() -> String {
    answer(
        [
            json!({"text": THOUGHT, "thought": true}),
            json!({"text": TEXT}),
            json!({"functionCall": {"name": "look", "args": {"at": "the door"}}, "thoughtSignature": "gemini-signature"}),
            json!({"functionCall": {"name": "clock_now", "args": {}}}),
        ],
        "STOP",
    )
}

fn second() -> String {
    let calls = [json!({"name": "draw"}), json!({"name": "open", "args": {"key": "none"}})];
    answer(calls.map(|call| json!({"functionCall": call})), "STOP")
}

fn refused() -> String {
    answer([json!({"text": REFUSAL})], "SAFETY")
}

pub(crate) fn said(text: &str) -> String {
    answer([json!({"text": text})], "STOP")
}

fn answer(parts: impl IntoIterator<Item = Value>, finish: &str) -> String {
    let piece = |part| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
    let end = json!({"candidates": [{"index": 0, "finishReason": finish}]});
    events(parts.into_iter().map(piece).chain([end]))
}
